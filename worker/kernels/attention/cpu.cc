// Attention and its gradient, some rows of one head at a time: their scores live in a strip of scratch, and what lies
// above a causal mask's diagonal is not computed. A thread takes whole heads of keys, with all heads of queries that
// read them, so that no sum depends on the number of threads.
#include <algorithm>

#include "common/random/random.h"
#include "worker/kernels/attention/cpu_scratch.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/random_blocks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// One call's shapes, mask and dropout: what forward and backward share.
class Heads {
 public:
  // `q` is the index of Q among the inputs; K and V follow it, `mask` and the random input each other.
  Heads(const HostCall& call, size_t q, size_t mask, bool backward)
      : attributes(call.attrs<AttentionAttributes>()),
        shape(attributes, call.in_shape(q), call.in_shape(q + 1), call.in_shape(q + 2)),
        scratch(shape, backward),
        q(call.in<float>(q)),
        k(attributes.packed_heads > 0 ? this->q : call.in<float>(q + 1)),
        v(attributes.packed_heads > 0 ? this->q : call.in<float>(q + 2)),
        mask_(call.in<float>(mask)),
        scale_(static_cast<float>(attributes.scale)) {
    if (mask_ != nullptr) strides_ = AttentionShape::MaskOf(call.in_shape(mask));
    if (attributes.ratio > 0) random_ = call.in<int64_t>(mask + 1);
  }

  // Keys that the strip of queries from `first` on reads, a multiple of kPanel.
  int64_t KeysOf(int64_t first) const {
    return attributes.causal ? std::min(scratch.keys, RoundUp(first + kStrip, kPanel)) : scratch.keys;
  }

  // Products become scores: scaled, masked, -infinity where there is no key.
  void Finish(int64_t b, int64_t h, int64_t query, int64_t width, float* row) const {
    const int64_t seen = attributes.causal ? std::min(shape.keys, query + 1) : shape.keys;
    const float scale = scale_;
    if (mask_ == nullptr) {
      for (int64_t i = 0; i < width; ++i) row[i] *= scale;
    } else {
      const float* mask = mask_ + b * strides_.batch + h * strides_.head + query * strides_.query;
      if (strides_.key == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < seen; ++i) row[i] = row[i] * scale + mask[i];
      } else {
        for (int64_t i = 0; i < seen; ++i) row[i] = row[i] * scale + mask[0];
      }
    }
    std::fill(row + seen, row + width, -kInfinity);
  }

  bool drops() const { return random_ != nullptr; }

  // Multiplies what dropout keeps of a row of probabilities and drops the rest.
  void Drop(int64_t b, int64_t h, int64_t query, float* row, int64_t width) const {
    const auto stream =
        RandomStream::For(static_cast<uint64_t>(random_[0]), attributes.stream, static_cast<uint64_t>(random_[1]),
                          static_cast<uint32_t>(random_[2]), static_cast<uint32_t>(random_[3]));
    const uint32_t threshold = DropThreshold(attributes.ratio);
    const auto factor = static_cast<float>(1.0 / (1.0 - attributes.ratio));
    const int64_t first = ((b * shape.heads + h) * shape.queries + query) * shape.keys;
    const int64_t end = first + std::min(width, shape.keys);
    for (int64_t element = first; element < end;) {
      uint32_t numbers[kNumbersAtOnce];
      DrawBlocks(stream, element / 4, numbers);
      const int64_t skipped = element % 4, drawn = std::min(end - element, kNumbersAtOnce - skipped);
      float* of = row + (element - first);
      for (int64_t i = 0; i < drawn; ++i) of[i] = numbers[skipped + i] >= threshold ? of[i] * factor : 0.0f;
      element += drawn;
    }
  }

  const AttentionAttributes& attributes;
  const AttentionShape shape;
  const AttentionScratch scratch;
  const float* q;
  const float* k;
  const float* v;

 private:
  const float* mask_;
  float scale_;
  AttentionMask strides_;
  const int64_t* random_ = nullptr;
};

// Calls body(sample, head of keys, scratch) for all.
template <typename Body>
void ForKeyHeads(const HostCall& call, const Heads& heads, const Body& body) {
  ParallelFor(heads.shape.batch * heads.shape.key_heads, 1, [&](int64_t begin, int64_t end) {
    float* scratch = reinterpret_cast<float*>(call.workspace) + omp_get_thread_num() * heads.scratch.total;
    for (int64_t i = begin; i < end; ++i) body(i / heads.shape.key_heads, i % heads.shape.key_heads, scratch);
  });
}

void ForwardStrip(const HostCall& call, const Heads& heads, int64_t b, int64_t h, int64_t first, float* scratch) {
  const AttentionShape& shape = heads.shape;
  const AttentionScratch& s = heads.scratch;
  const int64_t count = std::min(kStrip, shape.queries - first);
  const int64_t width = heads.KeysOf(first);
  float* strip = scratch + s.strip;
  PackRows(heads.q + shape.q.At(b, h, first), shape.q.row, count, shape.q.size, kStrip, s.size, scratch + s.q);
  BlockProduct<false>(kStrip, width, shape.q.size, scratch + s.q, s.size,
                      {scratch + s.keys_across, kPanel, shape.q.size * kPanel}, strip, s.strip_row, false);
  float* statistics = call.out<float>(1);
  float factors[kStrip];
  for (int64_t r = 0; r < count; ++r) {
    float* row = strip + r * s.strip_row;
    heads.Finish(b, h, first + r, width, row);
    const float largest = LargestOf(row, width);
    for (int64_t i = 0; i < width; ++i) row[i] = ExpOfScore(row[i] - largest);
    factors[r] = 1.0f / FloatSum(width, [row](int64_t i) { return row[i]; });
    if (statistics != nullptr) {
      float* of_row = statistics + ((b * shape.heads + h) * shape.queries + first + r) * 2;
      of_row[0] = largest;
      of_row[1] = factors[r];
    }
    if (heads.drops()) heads.Drop(b, h, first + r, row, width);
  }
  BlockProduct<false>(kStrip, s.value_size, width, strip, s.strip_row, {scratch + s.values, s.value_size, kPanel},
                      scratch + s.y, s.value_size, false);
  for (int64_t r = 0; r < count; ++r) {
    const float* from = scratch + s.y + r * s.value_size;
    float* to = call.out<float>(0) + shape.y.At(b, h, first + r);
    const float factor = factors[r];
    for (int64_t i = 0; i < shape.y.size; ++i) to[i] = from[i] * factor;
  }
}

void Attention(const HostCall& call) {
  const Heads heads(call, 0, 3, false);
  const AttentionShape& shape = heads.shape;
  const AttentionScratch& s = heads.scratch;
  const int64_t group = shape.heads / shape.key_heads;
  ForKeyHeads(call, heads, [&](int64_t b, int64_t kh, float* scratch) {
    PackAcross(heads.k + shape.k.At(b, kh, 0), shape.k.row, shape.keys, shape.k.size, s.keys, scratch + s.keys_across);
    PackRows(heads.v + shape.v.At(b, kh, 0), shape.v.row, shape.keys, shape.v.size, s.keys, s.value_size,
             scratch + s.values);
    for (int64_t h = kh * group; h < (kh + 1) * group; ++h) {
      for (int64_t first = 0; first < shape.queries; first += kStrip) ForwardStrip(call, heads, b, h, first, scratch);
    }
  });
}

// Products become the strip's probabilities, behind dropout, and the gradients of its scores.
void GradientRows(const HostCall& call, const Heads& heads, int64_t b, int64_t h, int64_t first, float* scratch) {
  const AttentionShape& shape = heads.shape;
  const AttentionScratch& s = heads.scratch;
  const int64_t count = std::min(kStrip, shape.queries - first);
  const int64_t width = heads.KeysOf(first);
  const auto scale = static_cast<float>(heads.attributes.scale);
  for (int64_t r = 0; r < count; ++r) {
    float* p = scratch + s.strip + r * s.strip_row;
    float* ds = scratch + s.gradient_strip + r * s.strip_row;
    const float* of_row = call.in<float>(5) + ((b * shape.heads + h) * shape.queries + first + r) * 2;
    const float largest = of_row[0];
    const float factor = of_row[1];
    const float* y = call.in<float>(4) + shape.y.At(b, h, first + r);
    const float* dy = call.in<float>(0) + shape.y.At(b, h, first + r);
    const float dot = Dot(y, dy, shape.y.size);
    heads.Finish(b, h, first + r, width, p);
    if (!heads.drops()) {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) {
        const float probability = ExpOfScore(p[i] - largest) * factor;
        p[i] = probability;
        ds[i] = probability * (ds[i] - dot) * scale;
      }
      continue;
    }
    float* kept = scratch + s.kept;
    std::fill_n(kept, width, 1.0f);
    heads.Drop(b, h, first + r, kept, width);
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) {
      const float probability = ExpOfScore(p[i] - largest) * factor;
      p[i] = probability * kept[i];
      ds[i] = probability * (ds[i] * kept[i] - dot) * scale;
    }
  }
  for (int64_t r = count; r < kStrip; ++r) {
    std::fill_n(scratch + s.strip + r * s.strip_row, width, 0.0f);
    std::fill_n(scratch + s.gradient_strip + r * s.strip_row, width, 0.0f);
  }
}

void BackwardStrip(const HostCall& call, const Heads& heads, int64_t b, int64_t h, int64_t first, float* scratch) {
  const AttentionShape& shape = heads.shape;
  const AttentionScratch& s = heads.scratch;
  const int64_t count = std::min(kStrip, shape.queries - first);
  const int64_t width = heads.KeysOf(first);
  float* strip = scratch + s.strip;
  float* gradients = scratch + s.gradient_strip;
  PackRows(heads.q + shape.q.At(b, h, first), shape.q.row, count, shape.q.size, kStrip, s.size, scratch + s.q);
  PackRows(call.in<float>(0) + shape.y.At(b, h, first), shape.y.row, count, shape.y.size, kStrip, s.value_size,
           scratch + s.y);
  BlockProduct<false>(kStrip, width, shape.q.size, scratch + s.q, s.size,
                      {scratch + s.keys_across, kPanel, shape.q.size * kPanel}, strip, s.strip_row, false);
  BlockProduct<false>(kStrip, width, shape.v.size, scratch + s.y, s.value_size,
                      {scratch + s.values, kPanel, shape.v.size * kPanel}, gradients, s.strip_row, false);
  GradientRows(call, heads, b, h, first, scratch);
  BlockProduct<true>(width, s.value_size, kStrip, strip, s.strip_row, {scratch + s.y, s.value_size, kPanel},
                     scratch + s.dv, s.value_size, true);
  BlockProduct<true>(width, s.size, kStrip, gradients, s.strip_row, {scratch + s.q, s.size, kPanel}, scratch + s.dk,
                     s.size, true);
  BlockProduct<false>(kStrip, s.size, width, gradients, s.strip_row, {scratch + s.keys_down, s.size, kPanel},
                      scratch + s.dq, s.size, false);
  Unpack(scratch + s.dq, s.size, count, shape.q.size, call.out<float>(0) + shape.q.At(b, h, first), shape.q.row);
}

void AttentionGrad(const HostCall& call) {
  const Heads heads(call, 1, 6, true);
  const AttentionShape& shape = heads.shape;
  const AttentionScratch& s = heads.scratch;
  const int64_t group = shape.heads / shape.key_heads;
  const bool packed = heads.attributes.packed_heads > 0;
  float* dk = call.out<float>(packed ? 0 : 1);
  float* dv = call.out<float>(packed ? 0 : 2);
  ForKeyHeads(call, heads, [&](int64_t b, int64_t kh, float* scratch) {
    const float* k = heads.k + shape.k.At(b, kh, 0);
    PackAcross(k, shape.k.row, shape.keys, shape.k.size, s.keys, scratch + s.keys_across);
    PackRows(k, shape.k.row, shape.keys, shape.k.size, s.keys, s.size, scratch + s.keys_down);
    PackAcross(heads.v + shape.v.At(b, kh, 0), shape.v.row, shape.keys, shape.v.size, s.keys, scratch + s.values);
    std::fill_n(scratch + s.dk, s.keys * s.size, 0.0f);
    std::fill_n(scratch + s.dv, s.keys * s.value_size, 0.0f);
    for (int64_t h = kh * group; h < (kh + 1) * group; ++h) {
      for (int64_t first = 0; first < shape.queries; first += kStrip) BackwardStrip(call, heads, b, h, first, scratch);
    }
    Unpack(scratch + s.dk, s.size, shape.keys, shape.k.size, dk + shape.k.At(b, kh, 0), shape.k.row);
    Unpack(scratch + s.dv, s.value_size, shape.keys, shape.v.size, dv + shape.v.At(b, kh, 0), shape.v.row);
  });
}

}  // namespace

OwnFunction OwnAttention(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kAttentionGrad;
  if (!backward && request.node->op != OpType::kAttention) return {};
  const size_t q = backward ? 1 : 0;
  const AttentionShape shape(AttributesOf<AttentionAttributes>(request), request.inputs[q].shape,
                             request.inputs[q + 1].shape, request.inputs[q + 2].shape);
  OwnFunction own = {backward ? &AttentionGrad : &Attention, "own:attention"};
  own.workspace_bytes =
      static_cast<size_t>(AttentionScratch(shape, backward).total * omp_get_max_threads()) * sizeof(float);
  return own;
}

}  // namespace lockstep::device::cpu::LS_CODE
