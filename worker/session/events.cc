#include "worker/session/events.h"

#include "common/protocol/text_definition.h"
#include "common/variant/one_of_definition.h"

namespace lockstep::worker {

LS_DEFINE_ONE_OF(Event)

}  // namespace lockstep::worker

LS_DEFINE_TEXT(lockstep::worker::Event);
