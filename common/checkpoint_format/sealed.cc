#include "common/checkpoint_format/sealed.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/digest/sha256.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kHexDigits = 64;
constexpr absl::string_view kDigestWord = "sha256 ";

const FieldDescriptor* DigestField(const Message& message) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName("sha256");
  LS_CHECK(field != nullptr && field->index() == message.GetDescriptor()->field_count() - 1,
           "a sealed message ends with its digest");
  return field;
}

absl::Status Changed(absl::string_view file, absl::string_view says, absl::string_view actual) {
  return absl::DataLossError(
      absl::StrCat(file, " was damaged: its content has the SHA-256 ", actual, ", it says ", says));
}

// A newer format may have fields that this program does not know: asked before anything else is.
absl::Status CheckFormat(absl::string_view json, absl::string_view file, int newest_format, Message* scratch) {
  const FieldDescriptor* field = scratch->GetDescriptor()->FindFieldByName("format_version");
  if (field == nullptr) return absl::OkStatus();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  scratch->Clear();
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), scratch, options);
  const int version = scratch->GetReflection()->GetInt32(*scratch, field);
  if (!parsed.ok() || version <= newest_format) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(file, " has format version ", version,
                                                    "; this program reads up to ", newest_format,
                                                    ". Use the program that wrote it, or a newer one"));
}

}  // namespace

std::string SealJson(Message* message) {
  const FieldDescriptor* field = DigestField(*message);
  const std::string zeros(kHexDigits, '0');
  message->GetReflection()->SetString(message, field, zeros);
  std::string json = ToJson(*message);
  const std::string digest = Sha256Hex(json);
  message->GetReflection()->SetString(message, field, digest);
  return json.replace(json.rfind(zeros), kHexDigits, digest);
}

absl::Status ReadSealedJson(absl::string_view json, absl::string_view file, int newest_format, Message* message) {
  LS_RETURN_IF_ERROR(CheckFormat(json, file, newest_format, message));
  LS_RETURN_IF_ERROR(FromJson(json, file, message));
  const std::string digest = message->GetReflection()->GetString(*message, DigestField(*message));
  if (digest.empty()) return absl::OkStatus();
  std::string zeroed(json);
  const size_t place = zeroed.rfind(digest);
  if (digest.size() != kHexDigits || place == std::string::npos) return Changed(file, digest, "of something else");
  const std::string actual = Sha256Hex(zeroed.replace(place, kHexDigits, std::string(kHexDigits, '0')));
  return actual == digest ? absl::OkStatus() : Changed(file, digest, actual);
}

std::string SealText(absl::string_view text) { return absl::StrCat(text, kDigestWord, Sha256Hex(text), "\n"); }

absl::StatusOr<std::string> ReadSealedText(absl::string_view sealed, absl::string_view file) {
  const absl::string_view whole = absl::StripTrailingAsciiWhitespace(sealed);
  const size_t before = whole.rfind('\n');
  const size_t begin = before == absl::string_view::npos ? 0 : before + 1;
  absl::string_view digest = whole.substr(begin);
  if (!absl::ConsumePrefix(&digest, kDigestWord)) return std::string(sealed);
  const std::string actual = Sha256Hex(sealed.substr(0, begin));
  if (actual != digest) return Changed(file, digest, actual);
  return std::string(sealed.substr(0, begin));
}

}  // namespace lockstep
