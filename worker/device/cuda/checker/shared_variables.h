// Which __shared__ variable of a kernel an address belongs to. In host execution they are static variables of the
// thread that runs the block; the program's own table of symbols says where they lie, how large they are, and their
// names.
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
  std::string name;  // as the linker has it
  uintptr_t offset = 0;
  size_t bytes = 0;
};

// The thread-local variables that functions of one module have.
struct SharedVariables {
  size_t bytes = 0;  // of all thread-local memory
  std::vector<SharedVariable> variables;
  std::vector<uint16_t> of_byte;  // 0 for none, else the variable's number plus one
};

class SharedMemory {
 public:
  struct Found {
    Shadow* shadow = nullptr;
    size_t offset = 0;                         // in the shadow
    const SharedVariable* variable = nullptr;  // null: no __shared__ variable has all these bytes
  };
  // Null where the address lies in no thread-local memory of a loaded module.
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
