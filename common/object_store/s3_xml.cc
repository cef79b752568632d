#include "common/object_store/s3_xml.h"

#include <tinyxml2.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using tinyxml2::XMLDocument;
using tinyxml2::XMLElement;

absl::Status Unreadable(absl::string_view text, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("the answer is not S3's: ", why, ": '",
                                             absl::CHexEscape(text.substr(0, 120)),
                                             "'. Does AWS_ENDPOINT_URL name an S3 server?"));
}

// The root, when it has that name.
absl::StatusOr<const XMLElement*> Root(XMLDocument& document, absl::string_view text, const char* name) {
  if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS) return Unreadable(text, document.ErrorName());
  const XMLElement* const root = document.RootElement();
  if (root == nullptr || absl::string_view(root->Name()) != name) {
    return Unreadable(text, absl::StrCat("expected <", name, ">"));
  }
  return root;
}

std::string TextOf(const XMLElement* parent, const char* name) {
  const XMLElement* const child = parent->FirstChildElement(name);
  const char* const text = child == nullptr ? nullptr : child->GetText();
  return text == nullptr ? "" : text;
}

absl::StatusOr<bool> Truncated(const XMLElement* root, absl::string_view text) {
  const std::string word = TextOf(root, "IsTruncated");
  if (word == "true") return true;
  if (word == "false") return false;
  return Unreadable(text, "no IsTruncated");
}

}  // namespace

std::optional<S3Error> ParseS3Error(absl::string_view text) {
  XMLDocument document;
  const auto root = Root(document, text, "Error");
  if (!root.ok()) return std::nullopt;
  return S3Error{TextOf(*root, "Code"), TextOf(*root, "Message"), TextOf(*root, "Region")};
}

absl::StatusOr<S3ListPage> ParseListPage(absl::string_view text) {
  XMLDocument document(/*processEntities=*/true, tinyxml2::PRESERVE_WHITESPACE);
  LS_ASSIGN_OR_RETURN(const XMLElement* const root, Root(document, text, "ListBucketResult"));
  LS_ASSIGN_OR_RETURN(const bool truncated, Truncated(root, text));
  S3ListPage page;
  for (auto* at = root->FirstChildElement("Contents"); at != nullptr; at = at->NextSiblingElement("Contents")) {
    ListedObject object;
    object.key = TextOf(at, "Key");
    if (object.key.empty() || !absl::SimpleAtoi(TextOf(at, "Size"), &object.size)) {
      return Unreadable(text, "an object without key or size");
    }
    page.objects.push_back(std::move(object));
  }
  for (auto* at = root->FirstChildElement("CommonPrefixes"); at != nullptr;
       at = at->NextSiblingElement("CommonPrefixes")) {
    page.folders.push_back(TextOf(at, "Prefix"));
    if (page.folders.back().empty()) return Unreadable(text, "a folder without a name");
  }
  if (truncated) {
    page.next_token = TextOf(root, "NextContinuationToken");
    if (page.next_token.empty()) return Unreadable(text, "truncated, and no NextContinuationToken");
  }
  return page;
}

absl::StatusOr<S3UploadsPage> ParseUploadsPage(absl::string_view text) {
  XMLDocument document;
  LS_ASSIGN_OR_RETURN(const XMLElement* const root, Root(document, text, "ListMultipartUploadsResult"));
  S3UploadsPage page;
  LS_ASSIGN_OR_RETURN(page.truncated, Truncated(root, text));
  for (auto* at = root->FirstChildElement("Upload"); at != nullptr; at = at->NextSiblingElement("Upload")) {
    page.uploads.push_back({TextOf(at, "Key"), TextOf(at, "UploadId")});
    if (page.uploads.back().key.empty() || page.uploads.back().id.empty()) {
      return Unreadable(text, "an upload without key or id");
    }
  }
  page.next_key = TextOf(root, "NextKeyMarker");
  page.next_id = TextOf(root, "NextUploadIdMarker");
  if (page.truncated && page.next_key.empty()) return Unreadable(text, "truncated, and no NextKeyMarker");
  return page;
}

absl::StatusOr<std::string> ParseUploadId(absl::string_view text) {
  XMLDocument document;
  LS_ASSIGN_OR_RETURN(const XMLElement* const root, Root(document, text, "InitiateMultipartUploadResult"));
  std::string id = TextOf(root, "UploadId");
  if (id.empty()) return Unreadable(text, "no UploadId");
  return id;
}

absl::Status ParseCompleted(absl::string_view text) {
  XMLDocument document;
  return Root(document, text, "CompleteMultipartUploadResult").status();
}

absl::Status ParseCopied(absl::string_view text) {
  XMLDocument document;
  return Root(document, text, "CopyObjectResult").status();
}

std::string CompletionBody(absl::Span<const UploadedPart> parts, bool with_checksums) {
  constexpr bool kCompact = true;
  tinyxml2::XMLPrinter printer(nullptr, kCompact);
  const auto element = [&printer](const char* name, const std::string& text) {
    printer.OpenElement(name, kCompact);
    printer.PushText(text.c_str());
    printer.CloseElement(kCompact);
  };
  printer.OpenElement("CompleteMultipartUpload", kCompact);
  printer.PushAttribute("xmlns", "http://s3.amazonaws.com/doc/2006-03-01/");
  for (const UploadedPart& part : parts) {
    printer.OpenElement("Part", kCompact);
    if (with_checksums) element("ChecksumCRC32C", ChecksumText(part.crc32c));
    element("ETag", absl::StrCat("\"", part.etag, "\""));
    element("PartNumber", absl::StrCat(part.number));
    printer.CloseElement(kCompact);
  }
  printer.CloseElement(kCompact);
  return printer.CStr();
}

std::string ChecksumText(uint32_t crc32c) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(crc32c >> shift));
  return absl::Base64Escape(bytes);
}

}  // namespace lockstep
