// Converts plain structs to one line of text and back, exactly; shells record it and replays read it. A value looks
// like `Form{members=[…] lineage="a" position=Position{step=3 evaluated_slices=0} …}`.
//
//   integers, enums   decimal            strings    quoted, C escapes      vectors, arrays   [a b]
//   bool              0 or 1             double     its 64 bits in hex     optional          - or the value
//   Duration, Time    nanoseconds, inf or -inf                             struct, variant   Name{field=value …}
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_TEXT_H_
#define LOCKSTEP_COMMON_PROTOCOL_TEXT_H_

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::text {

template <typename T>
concept Struct = requires {
  T::kFieldNames;
};

// A class made by LS_ONE_OF. Its conversion is compiled in the source that has LS_DEFINE_TEXT for it
// (text_definition.h).
template <typename T>
concept OneOf = requires {
  typename T::Variant;
};

// Appends values to a string. One overload per kind of value.
class Writer {
 public:
  void Put(bool value) { out_.push_back(value ? '1' : '0'); }
  void Put(double value) { absl::StrAppendFormat(&out_, "%016x", std::bit_cast<uint64_t>(value)); }
  void Put(const std::string& value) { absl::StrAppend(&out_, "\"", absl::CHexEscape(value), "\""); }
  void Put(absl::Duration value) {
    if (value == absl::InfiniteDuration() || value == -absl::InfiniteDuration()) {
      out_ += value > absl::ZeroDuration() ? "inf" : "-inf";
    } else {
      absl::StrAppend(&out_, absl::ToInt64Nanoseconds(value));
    }
  }
  void Put(absl::Time value) { Put(value - absl::UnixEpoch()); }

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void Put(T value) {
    absl::StrAppend(&out_, static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    PutList(values);
  }
  template <typename T, size_t n>
  void Put(const std::array<T, n>& values) {
    PutList(values);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    if (value.has_value()) {
      Put(*value);
    } else {
      out_.push_back('-');
    }
  }
  template <typename... Ts>
  void Put(const std::variant<Ts...>& value) {
    std::visit([this](const auto& alternative) { Put(alternative); }, value);
  }
  template <OneOf T>
  void Put(const T& value);
  template <Struct T>
  void Put(const T& value) {
    const std::vector<absl::string_view> names = absl::StrSplit(T::kFieldNames, ", ", absl::SkipEmpty());
    absl::StrAppend(&out_, T::kTypeName, "{");
    size_t index = 0;
    const auto put_field = [&](const auto& field) {
      absl::StrAppend(&out_, index == 0 ? "" : " ", names[index], "=");
      ++index;
      Put(field);
    };
    std::apply([&](const auto&... field) { (put_field(field), ...); }, value.Fields());
    out_.push_back('}');
  }

  std::string Take() { return std::move(out_); }

 private:
  template <typename List>
  void PutList(const List& values) {
    out_.push_back('[');
    bool first = true;
    for (const auto& value : values) {
      if (!first) out_.push_back(' ');
      first = false;
      Put(value);
    }
    out_.push_back(']');
  }

  std::string out_;
};

// Reads what Writer wrote. After the first mismatch every call does nothing and `ok` is false.
class Reader {
 public:
  explicit Reader(absl::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  absl::string_view rest() const { return rest_; }

  void Get(bool& value) { value = Word() == "1"; }
  void Get(double& value) {
    uint64_t bits = 0;
    ok_ = ok_ && absl::SimpleHexAtoi(Word(), &bits);
    value = std::bit_cast<double>(bits);
  }
  void Get(std::string& value) {
    Expect("\"");
    const size_t end = rest_.find('"');  // CHexEscape writes every quote as \"
    size_t stop = end;
    while (stop != absl::string_view::npos && EscapedAt(stop)) stop = rest_.find('"', stop + 1);
    if (!ok_ || stop == absl::string_view::npos || !absl::CUnescape(rest_.substr(0, stop), &value)) return Fail();
    rest_.remove_prefix(stop + 1);
  }
  void Get(absl::Duration& value) {
    const absl::string_view word = Word();
    int64_t nanoseconds = 0;
    if (word == "inf") {
      value = absl::InfiniteDuration();
    } else if (word == "-inf") {
      value = -absl::InfiniteDuration();
    } else if (absl::SimpleAtoi(word, &nanoseconds)) {
      value = absl::Nanoseconds(nanoseconds);
    } else {
      Fail();
    }
  }
  void Get(absl::Time& value) {
    absl::Duration since_epoch;
    Get(since_epoch);
    value = absl::UnixEpoch() + since_epoch;
  }

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void Get(T& value) {
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> number = 0;
    if (!absl::SimpleAtoi(Word(), &number)) return Fail();
    value = static_cast<T>(number);
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    values.clear();
    Expect("[");
    while (ok_ && !Skip("]")) {
      if (!values.empty()) Expect(" ");
      Get(values.emplace_back());
    }
  }
  template <typename T, size_t n>
  void Get(std::array<T, n>& values) {
    std::vector<T> list;
    Get(list);
    if (list.size() != n) return Fail();
    for (size_t i = 0; i < n; ++i) values[i] = list[i];
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    value.reset();
    if (!Skip("-")) Get(value.emplace());
  }
  template <typename... Ts>
  void Get(std::variant<Ts...>& value) {
    if (!(TryAlternative<Ts>(value) || ...)) Fail();
  }
  template <OneOf T>
  void Get(T& value);
  template <Struct T>
  void Get(T& value) {
    const std::vector<absl::string_view> names = absl::StrSplit(T::kFieldNames, ", ", absl::SkipEmpty());
    Expect(T::kTypeName);
    Expect("{");
    size_t index = 0;
    const auto get_field = [&](auto& field) {
      if (index != 0) Expect(" ");
      Expect(names[index++]);
      Expect("=");
      if (ok_) Get(field);
    };
    std::apply([&](auto&... field) { (get_field(field), ...); }, value.Fields());
    Expect("}");
  }

  // Consumes `token` and returns true when it comes next.
  bool Skip(absl::string_view token) {
    if (!ok_ || rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

 private:
  template <typename T, typename Variant>
  bool TryAlternative(Variant& value) {
    const absl::string_view name = T::kTypeName;
    if (!ok_ || rest_.substr(0, name.size()) != name || rest_.substr(name.size(), 1) != "{") return false;
    T alternative;
    Get(alternative);
    value = std::move(alternative);
    return true;
  }
  void Expect(absl::string_view token) {
    if (!Skip(token)) Fail();
  }
  absl::string_view Word() {
    const absl::string_view word = rest_.substr(0, rest_.find_first_of(" ]}"));
    rest_.remove_prefix(word.size());
    if (word.empty()) Fail();
    return word;
  }
  bool EscapedAt(size_t quote) const {
    size_t backslashes = 0;
    while (backslashes < quote && rest_[quote - 1 - backslashes] == '\\') ++backslashes;
    return backslashes % 2 == 1;
  }
  void Fail() { ok_ = false; }

  absl::string_view rest_;
  bool ok_ = true;
};

template <typename T>
std::string ToText(const T& value) {
  Writer writer;
  writer.Put(value);
  return writer.Take();
}

// InvalidArgument, with the unread rest, when `text` is not exactly one T.
template <typename T>
absl::Status FromText(absl::string_view text, T& value) {
  Reader reader(text);
  reader.Get(value);
  if (reader.ok() && reader.rest().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a record of this build, from: ", reader.rest().substr(0, 80)));
}

}  // namespace lockstep::text

#endif  // LOCKSTEP_COMMON_PROTOCOL_TEXT_H_
