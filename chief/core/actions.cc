#include "chief/core/actions.h"

#include "common/protocol/text_definition.h"
#include "common/variant/one_of_definition.h"

namespace lockstep::chief {

LS_DEFINE_ONE_OF(Action)

}  // namespace lockstep::chief

LS_DEFINE_TEXT(lockstep::chief::Action);
