#include "chief/core/events.h"

#include "common/protocol/text_definition.h"
#include "common/variant/one_of_definition.h"

namespace lockstep::chief {

LS_DEFINE_ONE_OF(Event)

}  // namespace lockstep::chief

LS_DEFINE_TEXT(lockstep::chief::Event);
