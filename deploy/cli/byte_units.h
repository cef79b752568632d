// Units of the sizes that commands print.
//
// Threading: immutable.
#ifndef LOCKSTEP_DEPLOY_CLI_BYTE_UNITS_H_
#define LOCKSTEP_DEPLOY_CLI_BYTE_UNITS_H_

namespace lockstep::cli {

inline constexpr double kMiB = 1 << 20;
inline constexpr double kGiB = 1 << 30;

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_BYTE_UNITS_H_
