#include "common/graph/ops/attributes.h"

#include "common/variant/one_of_definition.h"

namespace lockstep {

LS_DEFINE_ONE_OF(OpAttributes)

}  // namespace lockstep
