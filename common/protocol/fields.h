// Lists the fields of a plain struct once, so that text records, wire conversion and comparison are written once for
// all of them. A struct that crosses a core's border writes, after its members:
//
//   LS_FIELDS(Position, step, evaluated_slices)
//
// which also gives it a defaulted operator==. The order of the fields is the order in records; their names are the
// names of the fields in protos/session.proto.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_
#define LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_

#include <tuple>

#define LS_FIELDS(Type, ...)                               \
  auto Fields() { return std::tie(__VA_ARGS__); }          \
  auto Fields() const { return std::tie(__VA_ARGS__); }    \
  static constexpr const char* kTypeName = #Type;          \
  static constexpr const char* kFieldNames = #__VA_ARGS__; \
  friend bool operator==(const Type&, const Type&) = default;

#define LS_NO_FIELDS(Type)                        \
  auto Fields() { return std::tuple<>(); }        \
  auto Fields() const { return std::tuple<>(); }  \
  static constexpr const char* kTypeName = #Type; \
  static constexpr const char* kFieldNames = "";  \
  friend bool operator==(const Type&, const Type&) = default;

#endif  // LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_
