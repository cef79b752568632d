// Compiles a class declared by LS_ONE_OF. Included only by the one source that defines it.
//
// Threading: thread-compatible, like std::variant.
#ifndef LOCKSTEP_COMMON_VARIANT_ONE_OF_DEFINITION_H_
#define LOCKSTEP_COMMON_VARIANT_ONE_OF_DEFINITION_H_

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

namespace lockstep {

// Moves `*alternative`, which is the alternative `index`, into `to`.
template <typename... Ts>
void MoveAlternative(std::variant<Ts...>& to, size_t index, void* alternative) {
  size_t at = 0;
  const auto move = [&]<typename T>(std::type_identity<T>) {
    if (at++ == index) to.template emplace<T>(std::move(*static_cast<T*>(alternative)));
  };
  (move(std::type_identity<Ts>()), ...);
}

}  // namespace lockstep

// Defines what LS_ONE_OF(Name, …) declares.
#define LS_DEFINE_ONE_OF(Name)                                                     \
  static_assert(std::is_nothrow_move_constructible_v<Name::Variant>);              \
  static_assert(std::is_nothrow_move_assignable_v<Name::Variant>);                 \
  Name::Name() = default;                                                          \
  Name::Name(const Name&) = default;                                               \
  Name::Name(Name&&) noexcept = default;                                           \
  Name& Name::operator=(const Name&) = default;                                    \
  Name& Name::operator=(Name&&) noexcept = default;                                \
  Name::~Name() = default;                                                         \
  Name::Name(size_t index, void* alternative) {                                    \
    ::lockstep::MoveAlternative(static_cast<Variant&>(*this), index, alternative); \
  }

#endif  // LOCKSTEP_COMMON_VARIANT_ONE_OF_DEFINITION_H_
