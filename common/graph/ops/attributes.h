// The typed attributes of any op: one alternative per op family that has attributes. Parsed once, from raw attributes,
// by the family; shape inference, gradients, fingerprint and kernels read only these.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTES_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTES_H_

#include <variant>

#include "common/graph/ops/activation.h"
#include "common/graph/ops/attention.h"
#include "common/graph/ops/batch_norm.h"
#include "common/graph/ops/conv.h"
#include "common/graph/ops/cross_entropy.h"
#include "common/graph/ops/dropout.h"
#include "common/graph/ops/einsum.h"
#include "common/graph/ops/elementwise.h"
#include "common/graph/ops/gather.h"
#include "common/graph/ops/gemm.h"
#include "common/graph/ops/group_norm.h"
#include "common/graph/ops/join.h"
#include "common/graph/ops/layer_norm.h"
#include "common/graph/ops/logic.h"
#include "common/graph/ops/lp_norm.h"
#include "common/graph/ops/metric.h"
#include "common/graph/ops/pad.h"
#include "common/graph/ops/pointwise_loss.h"
#include "common/graph/ops/pool.h"
#include "common/graph/ops/random_like.h"
#include "common/graph/ops/ranking.h"
#include "common/graph/ops/reduce.h"
#include "common/graph/ops/resize.h"
#include "common/graph/ops/scatter.h"
#include "common/graph/ops/sequence.h"
#include "common/graph/ops/shape_ops.h"
#include "common/graph/ops/slice.h"
#include "common/graph/ops/softmax.h"
#include "common/graph/ops/transpose.h"
#include "common/variant/one_of.h"

namespace lockstep {

// Of ops that have none.
struct NoAttributes {
  friend bool operator==(const NoAttributes&, const NoAttributes&) = default;
};

LS_ONE_OF(OpAttributes,
          std::variant<
              NoAttributes, ActivationAttributes, GeluAttributes, ClipAttributes, ScaleAttributes, ModAttributes,
              CastAttributes, IsInfAttributes, GemmAttributes, BatchMatMulAttributes, ConvAttributes, PoolAttributes,
              FlattenAttributes, ReshapeAttributes, ExpandAttributes, SoftmaxAttributes, CrossEntropyAttributes,
              PointwiseLossAttributes, BatchNormAttributes, DropoutAttributes, RandomLikeAttributes, ReduceAttributes,
              ReduceGradAttributes, LayerNormAttributes, GroupNormAttributes, LpNormAttributes, EinsumAttributes,
              ResizeAttributes, SqueezeAttributes, TransposeAttributes, BlockAttributes, ConcatAttributes,
              SplitAttributes, SliceAttributes, PadAttributes, TileAttributes, GatherAttributes, GatherNdAttributes,
              ScatterAttributes, ScatterNdAttributes, ArgAttributes, TopKAttributes, OneHotAttributes, CumSumAttributes,
              TriluAttributes, ReverseSequenceAttributes, CountCorrectAttributes, AttentionAttributes>);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTES_H_
