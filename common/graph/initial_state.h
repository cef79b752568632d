// The state at step 0: a function of metagraph and seed alone. Written by the chief as the first checkpoint.
//
// Element e of a variable is SymmetricUnit(RandomStream::For(seed, StreamOfName(name)).At(e)) times the rule's bound,
// rounded to the variable's type. Slots and the step counter are zero, exponents kExponentUnset.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_INITIAL_STATE_H_
#define LOCKSTEP_COMMON_GRAPH_INITIAL_STATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/graph/state_layout.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Reads a tensor that an InitRule of kind kFile names: by the file's SHA-256 and the name inside it.
using InitFileReader =
    std::function<absl::StatusOr<Tensor>(const std::string& file_sha256, const std::string& tensor_name)>;

// One tensor per entry of MakeStateLayout(metagraph), in its order. `read_file` may be null when no variable begins
// from a file. InvalidArgument when a file's tensor has another shape or type than its variable; errors of `read_file`
// are passed on, with the variable named.
absl::StatusOr<std::vector<Tensor>> MakeInitialState(const MetaGraph& metagraph, uint64_t seed,
                                                     const InitFileReader& read_file = nullptr);

// The same for one tensor of the layout.
absl::StatusOr<Tensor> MakeInitialTensor(const MetaGraph& metagraph, const StateTensor& tensor, uint64_t seed,
                                         const InitFileReader& read_file = nullptr);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_INITIAL_STATE_H_
