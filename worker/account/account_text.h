// An account for people.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_
#define LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_

#include <string>

#include "worker/account/account.h"

namespace lockstep::worker {

// The whole: what the step is, a table by kind of kernel, the nodes that cost most, communication, what a second and
// the peak amount to, and every assumption that entered.
std::string AccountText(const WrittenStep& step, const Machine& machine, const Account& account);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_
