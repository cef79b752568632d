#include "common/graph/ops/transpose.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseTranspose(const RawAttributes& raw) {
  TransposeAttributes transpose;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Ints("perm", &transpose.perm).Finish());
  return OpAttributes(std::move(transpose));
}

RawAttributes FormatTranspose(const OpAttributes& attributes) {
  return {{"perm", std::get<TransposeAttributes>(attributes).perm}};
}

absl::StatusOr<OpAttributes> ParseBlocks(const RawAttributes& raw, bool with_mode) {
  BlockAttributes blocks;
  std::string mode = "DCR";
  AttributeReader reader(raw);
  reader.Int("blocksize", &blocks.block_size);
  if (with_mode) reader.String("mode", &mode);
  LS_RETURN_IF_ERROR(reader.Finish());
  if (!reader.Has("blocksize") || blocks.block_size < 1) {
    return absl::InvalidArgumentError("blocksize has to be given and at least 1");
  }
  if (mode != "DCR" && mode != "CRD") {
    return absl::InvalidArgumentError(absl::StrCat("mode '", mode, "' is neither DCR nor CRD"));
  }
  blocks.mode = mode == "DCR" ? BlockMode::kDcr : BlockMode::kCrd;
  return OpAttributes(blocks);
}

absl::StatusOr<OpAttributes> ParseDepthToSpace(const RawAttributes& raw) { return ParseBlocks(raw, true); }
absl::StatusOr<OpAttributes> ParseSpaceToDepth(const RawAttributes& raw) { return ParseBlocks(raw, false); }

RawAttributes FormatDepthToSpace(const OpAttributes& attributes) {
  const auto& blocks = std::get<BlockAttributes>(attributes);
  return {{"blocksize", blocks.block_size}, {"mode", std::string(blocks.mode == BlockMode::kDcr ? "DCR" : "CRD")}};
}

RawAttributes FormatSpaceToDepth(const OpAttributes& attributes) {
  return {{"blocksize", std::get<BlockAttributes>(attributes).block_size}};
}

absl::StatusOr<std::vector<ValueInfo>> InferTranspose(const Node& node, InputInfos inputs) {
  const auto& transpose = std::get<TransposeAttributes>(node.attributes);
  const Shape& from = inputs[0]->shape;
  const size_t rank = from.size();
  std::vector<bool> taken(rank, false);
  for (const int64_t axis : transpose.perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || taken[static_cast<size_t>(axis)]) break;
    taken[static_cast<size_t>(axis)] = true;
  }
  const auto count = static_cast<size_t>(std::count(taken.begin(), taken.end(), true));
  if (!transpose.perm.empty() && (transpose.perm.size() != rank || count != rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("perm ", ShapeString(transpose.perm), " is no permutation of the dimensions of input ",
                     ShapeString(from), "; it names each of 0 to ", static_cast<int64_t>(rank) - 1, " once"));
  }
  Shape shape(rank);
  for (size_t i = 0; i < rank; ++i) shape[i] = from[transpose.Source(i, rank)];
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::Status CheckImages(const Shape& shape) {
  if (shape.size() == 4) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input has shape ", ShapeString(shape), "; the op takes [batch, channels, height, width]"));
}

absl::StatusOr<std::vector<ValueInfo>> InferDepthToSpace(const Node& node, InputInfos inputs) {
  const int64_t b = std::get<BlockAttributes>(node.attributes).block_size;
  const Shape& x = inputs[0]->shape;
  LS_RETURN_IF_ERROR(CheckImages(x));
  int64_t area = 0;
  int64_t height = 0;
  int64_t width = 0;
  if (__builtin_mul_overflow(b, b, &area) || x[1] % area != 0 || __builtin_mul_overflow(x[2], b, &height) ||
      __builtin_mul_overflow(x[3], b, &width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the channels of input ", ShapeString(x), " are not divided by blocksize ", b, " squared"));
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, {x[0], x[1] / area, height, width}}};
}

absl::StatusOr<std::vector<ValueInfo>> InferSpaceToDepth(const Node& node, InputInfos inputs) {
  const int64_t b = std::get<BlockAttributes>(node.attributes).block_size;
  const Shape& x = inputs[0]->shape;
  LS_RETURN_IF_ERROR(CheckImages(x));
  if (x[2] % b != 0 || x[3] % b != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("height and width of input ", ShapeString(x), " are not divided by blocksize ", b));
  }
  LS_ASSIGN_OR_RETURN(const int64_t channels, CheckedNumElements({x[1], b, b}));
  return std::vector<ValueInfo>{{inputs[0]->dtype, {x[0], x[1] == 0 ? 0 : channels, x[2] / b, x[3] / b}}};
}

absl::Status TransposeGradient(GradientBuilder& b) {
  const auto& transpose = std::get<TransposeAttributes>(b.node().attributes);
  TransposeAttributes inverse;
  inverse.perm.resize(transpose.perm.size());
  for (size_t i = 0; i < transpose.perm.size(); ++i) {
    inverse.perm[static_cast<size_t>(transpose.perm[i])] = static_cast<int64_t>(i);
  }
  b.SetInputGradient(0, b.Emit("d0", OpType::kTranspose, {b.OutputGradient(0)}, inverse));
  return absl::OkStatus();
}

// dY read as `split`, its dimensions in the order `perm`, as the shape of X.
absl::Status Rearrange(GradientBuilder& b, const Shape& split, TransposeAttributes perm) {
  const std::string parts = b.ReshapeTo("d0.parts", b.OutputGradient(0), split);
  const std::string ordered = b.Emit("d0.ordered", OpType::kTranspose, {parts}, std::move(perm));
  b.SetInputGradient(0, b.ReshapeTo("d0", ordered, b.InputInfo(0).shape));
  return absl::OkStatus();
}

absl::Status DepthToSpaceGradient(GradientBuilder& b) {
  const auto& blocks = std::get<BlockAttributes>(b.node().attributes);
  const Shape y = b.OutputInfo(0).shape;
  const int64_t size = blocks.block_size;
  const bool dcr = blocks.mode == BlockMode::kDcr;
  // dY is [N, C, H, row, W, column].
  return Rearrange(b, {y[0], y[1], y[2] / size, size, y[3] / size, size},
                   dcr ? TransposeAttributes{{0, 3, 5, 1, 2, 4}} : TransposeAttributes{{0, 1, 3, 5, 2, 4}});
}

absl::Status SpaceToDepthGradient(GradientBuilder& b) {
  const int64_t size = std::get<BlockAttributes>(b.node().attributes).block_size;
  const Shape y = b.OutputInfo(0).shape;
  // dY is [N, row, column, C, H, W].
  return Rearrange(b, {y[0], size, size, y[1] / (size * size), y[2], y[3]}, {{0, 3, 4, 1, 5, 2}});
}

constexpr OpSchema kTransposeFamily[] = {
    {OpType::kTranspose, 1, 1, 1, 1, ParseTranspose, FormatTranspose, InferTranspose, TransposeGradient},
    {OpType::kDepthToSpace, 1, 1, 1, 1, ParseDepthToSpace, FormatDepthToSpace, InferDepthToSpace, DepthToSpaceGradient},
    {OpType::kSpaceToDepth, 1, 1, 1, 1, ParseSpaceToDepth, FormatSpaceToDepth, InferSpaceToDepth, SpaceToDepthGradient},
};

}  // namespace

absl::Span<const OpSchema> TransposeFamily() { return kTransposeFamily; }

}  // namespace lockstep
