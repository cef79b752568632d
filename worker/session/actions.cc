#include "worker/session/actions.h"

#include "common/protocol/text_definition.h"
#include "common/variant/one_of_definition.h"

namespace lockstep::worker {

LS_DEFINE_ONE_OF(Action)

}  // namespace lockstep::worker

LS_DEFINE_TEXT(lockstep::worker::Action);
