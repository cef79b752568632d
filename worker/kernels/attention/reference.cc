#include <algorithm>
#include <limits>
#include <utility>

#include "common/math/math.h"
#include "common/random/random.h"
#include "worker/kernels/attention/attention.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// What attention and its gradient share. `q` is the index of Q among the inputs, `mask` that of the mask.
template <typename T>
class Heads {
 public:
  Heads(const HostCall& call, size_t q, size_t mask)
      : attributes(call.attrs<AttentionAttributes>()),
        shape(attributes, call.in_shape(q), call.in_shape(q + 1), call.in_shape(q + 2)),
        q(call.in<T>(q)),
        k(attributes.packed_heads > 0 ? this->q : call.in<T>(q + 1)),
        v(attributes.packed_heads > 0 ? this->q : call.in<T>(q + 2)),
        mask_(call.in<T>(mask)),
        random_(attributes.ratio > 0 ? call.in<int64_t>(mask + 1) : nullptr) {
    if (mask_ != nullptr) strides_ = AttentionShape::MaskOf(call.in_shape(mask));
  }

  int64_t key_head(int64_t h) const { return h / (shape.heads / shape.key_heads); }
  int64_t seen(int64_t query) const { return attributes.causal ? std::min(query + 1, shape.keys) : shape.keys; }

  double Score(int64_t b, int64_t h, int64_t query, int64_t key) const {
    const T* left = q + shape.q.At(b, h, query);
    const T* right = k + shape.k.At(b, key_head(h), key);
    double sum = 0;
    for (int64_t i = 0; i < shape.q.size; ++i) sum += static_cast<double>(left[i]) * right[i];
    sum *= attributes.scale;
    if (mask_ == nullptr) return sum;
    return sum + mask_[b * strides_.batch + h * strides_.head + query * strides_.query + key * strides_.key];
  }

  // What dropout multiplies a weight with.
  double Kept(int64_t b, int64_t h, int64_t query, int64_t key) const {
    if (random_ == nullptr) return 1.0;
    const auto stream =
        RandomStream::For(static_cast<uint64_t>(random_[0]), attributes.stream, static_cast<uint64_t>(random_[1]),
                          static_cast<uint32_t>(random_[2]), static_cast<uint32_t>(random_[3]));
    const int64_t element = ((b * shape.heads + h) * shape.queries + query) * shape.keys + key;
    const bool kept = stream.At(static_cast<uint64_t>(element)) >= DropThreshold(attributes.ratio);
    return kept ? 1.0 / (1.0 - attributes.ratio) : 0.0;
  }

  // Calls body(sample, head, query) for all.
  template <typename Body>
  void ForQueries(const Body& body) const {
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t query = 0; query < shape.queries; ++query) body(b, h, query);
      }
    }
  }

  // The query's softmax over the keys that it sees; returns the largest score and one over the sum.
  std::pair<double, double> Weights(int64_t b, int64_t h, int64_t query, double* weights) const {
    const int64_t count = seen(query);
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < count; ++j) {
      weights[j] = Score(b, h, query, j);
      largest = weights[j] > largest || weights[j] != weights[j] ? weights[j] : largest;
    }
    double sum = 0;
    for (int64_t j = 0; j < count; ++j) sum += weights[j] = Exp(weights[j] - largest);
    for (int64_t j = 0; j < count; ++j) weights[j] /= sum;
    return {largest, 1.0 / sum};
  }

  const AttentionAttributes& attributes;
  const AttentionShape shape;
  const T* q;
  const T* k;
  const T* v;

 private:
  const T* mask_;
  const int64_t* random_;
  AttentionMask strides_;
};

template <typename T>
void AttentionReference(const HostCall& call) {
  const Heads<T> heads(call, 0, 3);
  const AttentionShape& shape = heads.shape;
  auto* weights = reinterpret_cast<double*>(call.workspace);
  heads.ForQueries([&](int64_t b, int64_t h, int64_t query) {
    const auto [largest, factor] = heads.Weights(b, h, query, weights);
    if (T* statistics = call.out<T>(1); statistics != nullptr) {
      T* of_row = statistics + ((b * shape.heads + h) * shape.queries + query) * 2;
      of_row[0] = static_cast<T>(largest);
      of_row[1] = static_cast<T>(factor);
    }
    T* y = call.out<T>(0) + shape.y.At(b, h, query);
    for (int64_t j = 0; j < heads.seen(query); ++j) weights[j] *= heads.Kept(b, h, query, j);
    for (int64_t i = 0; i < shape.v.size; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < heads.seen(query); ++j) {
        sum += weights[j] * heads.v[shape.v.At(b, heads.key_head(h), j) + i];
      }
      y[i] = static_cast<T>(sum);
    }
  });
}

// Gradients of keys and values gather in double, over all queries of all heads that share them.
template <typename T>
void AttentionGrad(const HostCall& call) {
  const Heads<T> heads(call, 1, 6);
  const AttentionShape& shape = heads.shape;
  const bool packed = heads.attributes.packed_heads > 0;
  auto* weights = reinterpret_cast<double*>(call.workspace);
  double* dk = weights + shape.keys;
  double* dv = dk + shape.batch * shape.key_heads * shape.keys * shape.k.size;
  std::fill(dk, dv + shape.batch * shape.key_heads * shape.keys * shape.v.size, 0.0);
  heads.ForQueries([&](int64_t b, int64_t h, int64_t query) {
    heads.Weights(b, h, query, weights);
    const int64_t head = heads.key_head(h);
    const T* q = heads.q + shape.q.At(b, h, query);
    const T* dy = call.in<T>(0) + shape.y.At(b, h, query);
    const T* y = call.in<T>(4) + shape.y.At(b, h, query);
    T* dq = call.out<T>(0) + shape.q.At(b, h, query);
    double dot = 0;
    for (int64_t i = 0; i < shape.v.size; ++i) dot += static_cast<double>(dy[i]) * y[i];
    for (int64_t j = 0; j < heads.seen(query); ++j) {
      const T* v = heads.v + shape.v.At(b, head, j);
      const double kept = heads.Kept(b, h, query, j);
      const int64_t row = (b * shape.key_heads + head) * shape.keys + j;
      double dweight = 0;
      for (int64_t i = 0; i < shape.v.size; ++i) {
        dweight += static_cast<double>(dy[i]) * v[i];
        dv[row * shape.v.size + i] += weights[j] * kept * dy[i];
      }
      weights[j] *= (dweight * kept - dot) * heads.attributes.scale;
      for (int64_t i = 0; i < shape.q.size; ++i) dk[row * shape.k.size + i] += weights[j] * q[i];
    }
    for (int64_t i = 0; i < shape.q.size; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < heads.seen(query); ++j) sum += weights[j] * heads.k[shape.k.At(b, head, j) + i];
      dq[i] = static_cast<T>(sum);
    }
  });
  for (int64_t row = 0; row < shape.batch * shape.key_heads * shape.keys; ++row) {
    const int64_t j = row % shape.keys;
    const int64_t head = row / shape.keys % shape.key_heads;
    const int64_t b = row / shape.keys / shape.key_heads;
    T* to_k = call.out<T>(packed ? 0 : 1) + shape.k.At(b, head, j);
    T* to_v = call.out<T>(packed ? 0 : 2) + shape.v.At(b, head, j);
    for (int64_t i = 0; i < shape.k.size; ++i) to_k[i] = static_cast<T>(dk[row * shape.k.size + i]);
    for (int64_t i = 0; i < shape.v.size; ++i) to_v[i] = static_cast<T>(dv[row * shape.v.size + i]);
  }
}

}  // namespace

int64_t AttentionDoubles(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kAttentionGrad;
  const size_t q = backward ? 1 : 0;
  const AttentionShape shape(std::get<AttentionAttributes>(request.node->attributes), request.inputs[q].shape,
                             request.inputs[q + 1].shape, request.inputs[q + 2].shape);
  if (!backward) return shape.keys;
  return shape.keys + shape.batch * shape.key_heads * shape.keys * (shape.k.size + shape.v.size);
}

template <typename T>
HostFunction AttentionFunction(OpType type) {
  if (type == OpType::kAttention) return &AttentionReference<T>;
  if (type == OpType::kAttentionGrad) return &AttentionGrad<T>;
  return nullptr;
}

template HostFunction AttentionFunction<float>(OpType type);
template HostFunction AttentionFunction<double>(OpType type);

}  // namespace lockstep::device::reference
