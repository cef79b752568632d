// Renders an account as text for people.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_
#define LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_

#include <string>

#include "worker/account/account.h"

namespace lockstep::worker {

// The full report: the step's sizes, a table by kind of kernel, the most expensive nodes, communication, throughput and
// the share of the machine's peak, and every assumption that entered.
std::string AccountText(const WrittenStep& step, const Machine& machine, const Account& account);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_TEXT_H_
