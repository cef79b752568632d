// Formats events and actions of the cores as lines of text, for traces. A unit of its own because it is slow to
// compile.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_TESTS_SIMULATION_DESCRIBE_H_
#define LOCKSTEP_TESTS_SIMULATION_DESCRIBE_H_

#include <string>

#include "chief/core/actions.h"
#include "chief/core/events.h"
#include "worker/session/actions.h"
#include "worker/session/events.h"

namespace lockstep::simulation {

std::string Describe(const chief::Event& event);
std::string Describe(const chief::Action& action);
std::string Describe(const worker::Event& event);
std::string Describe(const worker::Action& action);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_DESCRIBE_H_
