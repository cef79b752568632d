#include "common/net/client_hello.h"

#include <cstdint>
#include <optional>

namespace lockstep {
namespace {

constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHelloMessage = 1;
constexpr size_t kRecordHeaderBytes = 5;
constexpr size_t kVersionAndRandomBytes = 2 + 32;
constexpr uint32_t kServerNameExtension = 0;
constexpr uint32_t kHostName = 0;

// Takes numbers and pieces from the front of bytes; nullopt where they end before.
class Cursor {
 public:
  explicit Cursor(absl::string_view bytes) : left_(bytes) {}

  std::optional<absl::string_view> Take(size_t count) {
    if (left_.size() < count) return std::nullopt;
    const absl::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  // Big-endian.
  std::optional<uint32_t> Number(size_t bytes) {
    const auto taken = Take(bytes);
    if (!taken.has_value()) return std::nullopt;
    uint32_t number = 0;
    for (const char byte : *taken) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
  }
  // A piece behind its length of `length_bytes` bytes.
  std::optional<absl::string_view> Piece(size_t length_bytes) {
    const auto length = Number(length_bytes);
    return length.has_value() ? Take(*length) : std::nullopt;
  }
  bool at_end() const { return left_.empty(); }

 private:
  absl::string_view left_;
};

// The host name among `names`, the content of the extension.
std::optional<absl::string_view> HostNameIn(absl::string_view extension) {
  Cursor cursor(extension);
  const auto list = cursor.Piece(2);
  if (!list.has_value() || !cursor.at_end()) return std::nullopt;
  Cursor names(*list);
  while (!names.at_end()) {
    const auto kind = names.Number(1);
    const auto name = names.Piece(2);
    if (!kind.has_value() || !name.has_value()) return std::nullopt;
    if (*kind == kHostName) return name;
  }
  return absl::string_view();
}

// The server name in the body of a ClientHello; nullopt: it is damaged.
std::optional<absl::string_view> ServerNameIn(absl::string_view body) {
  Cursor cursor(body);
  if (!cursor.Take(kVersionAndRandomBytes).has_value() || !cursor.Piece(1).has_value() ||  // the session's id
      !cursor.Piece(2).has_value() || !cursor.Piece(1).has_value()) {                      // ciphers, compression
    return std::nullopt;
  }
  if (cursor.at_end()) return absl::string_view();
  const auto list = cursor.Piece(2);
  if (!list.has_value() || !cursor.at_end()) return std::nullopt;
  Cursor extensions(*list);
  while (!extensions.at_end()) {
    const auto kind = extensions.Number(2);
    const auto content = extensions.Piece(2);
    if (!kind.has_value() || !content.has_value()) return std::nullopt;
    if (*kind == kServerNameExtension) return HostNameIn(*content);
  }
  return absl::string_view();
}

}  // namespace

ClientHello ReadClientHello(absl::string_view bytes) {
  Cursor cursor(bytes);
  const auto kind = cursor.Number(1);
  if (!kind.has_value()) return {ClientHello::State::kPartial, ""};
  if (*kind != kHandshakeRecord) return {};
  const auto version = cursor.Number(2);
  if (version.has_value() && *version >> 8 != 3) return {};
  const auto length = cursor.Number(2);
  if (length.has_value() && (*length < 4 || *length + kRecordHeaderBytes > kMostHelloBytes)) return {};
  if (!length.has_value()) return {ClientHello::State::kPartial, ""};
  const auto record = cursor.Take(*length);
  if (!record.has_value()) return {ClientHello::State::kPartial, ""};

  Cursor message(*record);
  const auto type = message.Number(1);
  const auto body = message.Piece(3);
  if (type != kClientHelloMessage || !body.has_value() || !message.at_end()) return {};
  const auto name = ServerNameIn(*body);
  if (!name.has_value()) return {};
  return {ClientHello::State::kWhole, std::string(*name)};
}

}  // namespace lockstep
