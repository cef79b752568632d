// What the one source includes that compiles the text of a class of alternatives (common/variant/one_of.h).
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

// Outside of any namespace.
#define LS_DEFINE_TEXT(Name)                              \
  template void lockstep::text::Writer::Put(const Name&); \
  template void lockstep::text::Reader::Get(Name&)

#endif  // LOCKSTEP_COMMON_PROTOCOL_TEXT_DEFINITION_H_
