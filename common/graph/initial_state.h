// The state at step 0: a function of metagraph and seed alone. The chief writes it as the first checkpoint.
//
// With r(e) = RandomStream::For(seed, StreamOfName(name)).At(e), element e of a variable is, rounded to its type,
//   uniform   SymmetricUnit(r(e)) times the rule's bound
//   normal    the standard deviation times sqrt(-2 ln u) * cos(2 pi v) for an even e, and times
//             sqrt(-2 ln u) * sin(2 pi v) for an odd one, where u = (r(2k) + 1) / 2^32 and v = r(2k + 1) / 2^32 for
//             k = floor(e / 2) (Box and Muller, "A note on the generation of random normal deviates", 1958). In F64,
//             with the functions of common/math; no element is beyond 6.67 deviations
// Averages start as copies of their parameters, slots and the step counter at zero, exponents at kExponentUnset.
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

// Reads the tensor that an InitRule of kind kFile names by the file's SHA-256 and the tensor's name in the file.
using InitFileReader =
    std::function<absl::StatusOr<Tensor>(const std::string& file_sha256, const std::string& tensor_name)>;

// One tensor per entry of MakeStateLayout(metagraph), in its order. `read_file` may be null when no variable has an
// InitRule of kind kFile. InvalidArgument when a file's tensor has another shape or type than its variable; errors of
// `read_file` are passed on, with the variable named.
absl::StatusOr<std::vector<Tensor>> MakeInitialState(const MetaGraph& metagraph, uint64_t seed,
                                                     const InitFileReader& read_file = nullptr);

// The same for one tensor of the layout.
absl::StatusOr<Tensor> MakeInitialTensor(const MetaGraph& metagraph, const StateTensor& tensor, uint64_t seed,
                                         const InitFileReader& read_file = nullptr);

// The same for a single variable, without the rest of the state: for model files.
absl::StatusOr<Tensor> MakeInitialVariable(const Variable& variable, uint64_t seed,
                                           const InitFileReader& read_file = nullptr);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_INITIAL_STATE_H_
