// A std::variant as a class of its own, whose copies, moves and destruction are compiled in one source.
//
// Every source that copies, moves or drops a std::variant of forty structs compiles a function for each of the forty,
// and again for each of these uses, which costs about a tenth of the build time. With a class made by LS_ONE_OF it
// compiles only calls. std::visit, std::get, std::get_if and std::holds_alternative accept such a class like the
// variant.
//
//   message.h    LS_ONE_OF(Message, std::variant<Hello, Bye>);
//   message.cc   LS_DEFINE_ONE_OF(Message)                       (of one_of_definition.h)
//
// Threading: thread-compatible, like std::variant.
#ifndef LOCKSTEP_COMMON_VARIANT_ONE_OF_H_
#define LOCKSTEP_COMMON_VARIANT_ONE_OF_H_

#include <cstddef>
#include <type_traits>
#include <variant>

namespace lockstep {

// The index of T among the alternatives; their number when T is none of them.
template <typename T, typename Variant>
struct AlternativeIndex;

template <typename T, typename... Ts>
struct AlternativeIndex<T, std::variant<Ts...>> {
  static constexpr size_t Find() {
    size_t index = 0;
    static_cast<void>(((std::is_same_v<T, Ts> || (++index, false)) || ...));
    return index;
  }
  static constexpr size_t value = Find();
};

template <typename T, typename Variant>
concept AlternativeOf = AlternativeIndex<T, Variant>::value < std::variant_size_v<Variant>;

}  // namespace lockstep

// Declares class `Name`; what follows it is the std::variant. A default Name holds the first alternative, and each
// alternative converts to a Name. None of them may throw when moved.
#define LS_ONE_OF(Name, ...)                                                                     \
  class Name : public __VA_ARGS__ {                                                              \
   public:                                                                                       \
    using Variant = __VA_ARGS__;                                                                 \
    Name();                                                                                      \
    Name(const Name&);                                                                           \
    Name(Name&&) noexcept;                                                                       \
    Name& operator=(const Name&);                                                                \
    Name& operator=(Name&&) noexcept;                                                            \
    ~Name();                                                                                     \
    template <::lockstep::AlternativeOf<__VA_ARGS__> T>                                          \
    Name(T alternative) : Name(::lockstep::AlternativeIndex<T, Variant>::value, &alternative) {} \
                                                                                                 \
   private:                                                                                      \
    Name(size_t index, void* alternative); /* moves from it */                                   \
  }

#endif  // LOCKSTEP_COMMON_VARIANT_ONE_OF_H_
