// Compiles the text conversion of a class made by LS_ONE_OF (common/variant/one_of.h). Included only by the one source
// that defines it.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_TEXT_DEFINITION_H_
#define LOCKSTEP_COMMON_PROTOCOL_TEXT_DEFINITION_H_

#include "common/protocol/text.h"

namespace lockstep::text {

template <OneOf T>
void Writer::Put(const T& value) {
  Put(static_cast<const typename T::Variant&>(value));
}

template <OneOf T>
void Reader::Get(T& value) {
  Get(static_cast<typename T::Variant&>(value));
}

}  // namespace lockstep::text

// Use outside of any namespace.
#define LS_DEFINE_TEXT(Name)                              \
  template void lockstep::text::Writer::Put(const Name&); \
  template void lockstep::text::Reader::Get(Name&)

#endif  // LOCKSTEP_COMMON_PROTOCOL_TEXT_DEFINITION_H_
