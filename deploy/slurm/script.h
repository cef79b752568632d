// The batch script lockstep.sbatch of this folder, compiled in for a program that is installed without it.
//
// Threading: immutable.
#ifndef LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_
#define LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_

#include "absl/strings/string_view.h"

namespace lockstep::slurm {

// The whole script, with its last newline.
absl::string_view BatchScript();

}  // namespace lockstep::slurm

#endif  // LOCKSTEP_DEPLOY_SLURM_SCRIPT_H_
