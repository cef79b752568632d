// Own kernels of values whose channels lie in blocks: they compute what they compute of row-major values, for every
// block that they serve.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "common/random/random.h"
#include "worker/device/host/host_memory.h"
#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/own_codes.h"

namespace lockstep::device::cpu {
namespace {

using Floats = std::vector<float>;

// [samples, channels, positions], row by row or as [samples, blocks, positions, block], the last block filled up.
struct Image {
  int64_t samples;
  int64_t channels;
  int64_t positions;

  Shape shape() const { return {samples, channels, positions}; }
  int64_t blocks(int64_t block) const { return (channels + block - 1) / block; }
  int64_t elements(int64_t block) const { return samples * blocks(block) * block * positions; }

  // Calls visit(place in rows, place in blocks) for each element.
  template <typename Visit>
  void ForEach(int64_t block, const Visit& visit) const {
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < positions; ++i) {
          const int64_t in_blocks = ((n * blocks(block) + c / block) * positions + i) * block + c % block;
          visit(static_cast<size_t>((n * channels + c) * positions + i), static_cast<size_t>(in_blocks));
        }
      }
    }
  }
};

constexpr float kUnwritten = 77.0f;

// One run of a batch normalisation, with images in `block`; 0: in rows. Images come back in rows. Behind every array
// are floats that nothing may write.
std::vector<Floats> Run(FindFunction find, OpType op, const Image& image, int block) {
  constexpr size_t kBehind = 64;
  const bool gradient = op == OpType::kBatchNormGrad;
  const Shape vector = {image.channels};
  const std::vector<Shape> ins = gradient ? std::vector<Shape>{image.shape(), image.shape(), vector, vector, vector}
                                          : std::vector<Shape>{image.shape(), vector, vector};
  const std::vector<Shape> outs = gradient ? std::vector<Shape>{image.shape(), vector, vector}
                                           : std::vector<Shape>{image.shape(), vector, vector, vector};
  const auto in_blocks = [&](const Shape& shape) { return block != 0 && shape == image.shape(); };
  const auto allocate = [&](const Shape& shape) {
    const int64_t size = in_blocks(shape) ? image.elements(block) : NumElements(shape);
    return Floats(static_cast<size_t>(size) + kBehind, kUnwritten);
  };

  const Node node{.name = "node", .op = op, .attributes = BatchNormAttributes{}};
  KernelRequest request{.node = &node};
  std::vector<Floats> inputs, outputs;
  KernelArguments arguments;
  for (size_t i = 0; i < ins.size(); ++i) {
    request.inputs.push_back({.shape = ins[i]});
    const RandomStream random = RandomStream::For(5, i);
    Floats& values = inputs.emplace_back(allocate(ins[i]));
    const auto drawn = [&](size_t at) { return 2.0f * SymmetricUnit(random.At(at)) + (i > 1 ? 3.0f : 0.0f); };
    if (in_blocks(ins[i])) {
      std::fill(values.begin(), values.end() - kBehind, 0.0f);
      image.ForEach(block, [&](size_t row, size_t place) { values[place] = drawn(row); });
    } else {
      for (size_t at = 0; at < static_cast<size_t>(NumElements(ins[i])); ++at) values[at] = drawn(at);
    }
  }
  for (const Shape& shape : outs) {
    request.outputs.push_back({.shape = shape});
    outputs.push_back(allocate(shape));
  }
  for (Floats& values : inputs) arguments.inputs.push_back(reinterpret_cast<std::byte*>(values.data()));
  for (Floats& values : outputs) arguments.outputs.push_back(reinterpret_cast<std::byte*>(values.data()));
  const OwnFunction own = find(request);
  REQUIRE(own.channel_blocks);
  HostKernelTraits traits{.implementation = own.name};
  if (block != 0) {
    traits.layout = {.name = "blocked", .encoding = "blocked", .bytes = static_cast<size_t>(image.elements(block)) * 4};
    traits.layout.channel_block = block;
    traits.layout_shape = image.shape();
  }
  const auto kernel = MakeHostKernel(request, own.function, std::move(traits));
  REQUIRE(kernel->Bind(arguments).ok());
  REQUIRE(kernel->Launch(*NewImmediateStream()).ok());

  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t behind = outputs[i].size() - kBehind; behind < outputs[i].size(); ++behind) {
      REQUIRE(outputs[i][behind] == kUnwritten);
    }
    outputs[i].resize(outputs[i].size() - kBehind);
    if (!in_blocks(outs[i])) continue;
    Floats rows(static_cast<size_t>(NumElements(outs[i])));
    image.ForEach(block, [&](size_t row, size_t place) { rows[row] = outputs[i][place]; });
    outputs[i] = std::move(rows);
  }
  return outputs;
}

TEST_CASE("channel blocks: batch normalisations compute what they compute of rows", "[device]") {
  for (const OpType op : {OpType::kBatchNormTraining, OpType::kBatchNormGrad}) {
    for (const Image& image : {Image{2, 16, 4}, Image{3, 12, 7}, Image{2, 21, 9}, Image{5, 4, 1}, Image{1, 3, 6}}) {
      for (const Code& code : Codes()) {
        const std::vector<Floats> expected = Run(code.find, op, image, 0);
        for (int block = 1; block <= 64; ++block) {
          if (!ServesChannelBlock(block)) continue;
          INFO(OpName(op) << " by " << code.name << ", " << image.channels << " channels in blocks of " << block);
          const std::vector<Floats> got = Run(code.find, op, image, block);
          for (size_t i = 0; i < expected.size(); ++i) {
            for (size_t at = 0; at < expected[i].size(); ++at) {
              CAPTURE(i, at);
              REQUIRE(got[i][at] == Approx(expected[i][at]).epsilon(1e-5).margin(1e-5));
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::device::cpu
