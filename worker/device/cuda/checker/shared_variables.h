// Finds the __shared__ variable of a kernel that contains an address. In host execution these are static thread-local
// variables of the thread that runs the block; their addresses, sizes and names come from the program's symbol table.
//
// Threading: owned by the thread whose variables they are.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHARED_VARIABLES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHARED_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/cuda/checker/shadow.h"

namespace lockstep::device::cuda::checker {

struct SharedVariable {
  std::string name;  // the symbol's
  uintptr_t offset = 0;
  size_t bytes = 0;
};

// The function-local thread-local variables of one loaded module.
struct SharedVariables {
  size_t bytes = 0;  // of the module's thread-local memory
  std::vector<SharedVariable> variables;
  std::vector<uint16_t> of_byte;  // 0 for none, else the variable's number plus one
};

class SharedMemory {
 public:
  struct Found {
    Shadow* shadow = nullptr;
    size_t offset = 0;                         // in the shadow
    const SharedVariable* variable = nullptr;  // null: no __shared__ variable contains all these bytes
  };
  // Null when the address lies in no thread-local memory of a loaded module.
  const Found* Find(uintptr_t address, size_t bytes);

 private:
  struct Module {
    uintptr_t base = 0;
    const SharedVariables* variables = nullptr;
    std::unique_ptr<Shadow> shadow;
  };
  Module* Of(uintptr_t address);

  std::vector<Module> modules_;
  Found found_;
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHARED_VARIABLES_H_
