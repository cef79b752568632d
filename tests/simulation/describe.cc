#include "tests/simulation/describe.h"

#include "common/protocol/text.h"

namespace lockstep::simulation {

std::string Describe(const chief::Event& event) { return text::ToText(event); }
std::string Describe(const chief::Action& action) { return text::ToText(action); }
std::string Describe(const worker::Event& event) { return text::ToText(event); }
std::string Describe(const worker::Action& action) { return text::ToText(action); }

}  // namespace lockstep::simulation
