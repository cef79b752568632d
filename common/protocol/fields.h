// Lists the fields of a plain struct once, so that text records, wire conversion and comparison are written once for
// all of them. A struct that crosses a core's border writes, after its members:
//
//   LS_FIELDS(Position, step, evaluated_slices)
//
// It also defines operator==, which compares floating-point fields by their bits, so that equal NaNs are equal. The
// order of the fields is the order in records; their names are the names of the fields in protos/session.proto.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_
#define LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

template <typename T>
bool SameField(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  } else {
    static_assert(!std::is_same_v<T, float> && !std::is_same_v<T, std::vector<double>>, "write its comparison");
    return a == b;
  }
}

// std::tie for LS_FIELDS. `Caller` makes the call depend on a template parameter, so that it is compiled only where
// used.
template <typename Caller, typename... Ts>
std::tuple<Ts&...> TieFields(Ts&... fields) {
  return {fields...};
}

// Compares two results of Fields().
template <typename... Ts>
bool SameFields(const std::tuple<Ts...>& a, const std::tuple<Ts...>& b) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return (SameField(std::get<I>(a), std::get<I>(b)) && ...); }
  (std::index_sequence_for<Ts...>());
}

}  // namespace lockstep

// Fields() is a template, so that only sources that call it pay for compiling it.
#define LS_FIELDS(Type, ...)                               \
  template <typename Caller = void>                        \
  auto Fields() {                                          \
    return TieFields<Caller>(__VA_ARGS__);                 \
  }                                                        \
  template <typename Caller = void>                        \
  auto Fields() const {                                    \
    return TieFields<Caller>(__VA_ARGS__);                 \
  }                                                        \
  static constexpr const char* kTypeName = #Type;          \
  static constexpr const char* kFieldNames = #__VA_ARGS__; \
  template <std::same_as<Type> Other>                      \
  bool operator==(const Other& other) const {              \
    return SameFields(Fields(), other.Fields());           \
  }

#define LS_NO_FIELDS(Type)                        \
  auto Fields() { return std::tuple<>(); }        \
  auto Fields() const { return std::tuple<>(); }  \
  static constexpr const char* kTypeName = #Type; \
  static constexpr const char* kFieldNames = "";  \
  friend bool operator==(const Type&, const Type&) = default;

#endif  // LOCKSTEP_COMMON_PROTOCOL_FIELDS_H_
