// The batch script lockstep.sbatch, as it lies beside this file, for a program that is alone on its machine.
//
// Threading: immutable.
#ifndef LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_
#define LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_

#include "absl/strings/string_view.h"

namespace lockstep::slurm {

// All of it, with its last line's end.
absl::string_view BatchScript();

}  // namespace lockstep::slurm

#endif  // LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_
