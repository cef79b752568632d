#include "common/protocol/messages.h"

#include "common/protocol/text_definition.h"
#include "common/variant/one_of_definition.h"

namespace lockstep {

LS_DEFINE_ONE_OF(WorkerMessage)
LS_DEFINE_ONE_OF(ChiefCommand)

}  // namespace lockstep

LS_DEFINE_TEXT(lockstep::WorkerMessage);
LS_DEFINE_TEXT(lockstep::ChiefCommand);
