// The listings of S3ObjectStore: pages that are put together and checked.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/object_store/object_key.h"
#include "common/object_store/s3_object_store.h"
#include "common/object_store/s3_xml.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kPageKeys = 1000;

// The key as the store's users know it. FailedPrecondition: it is not what was asked for, or not in order.
absl::StatusOr<std::string> Checked(const std::string& key, const std::string& root, const std::string& prefix,
                                    const std::string& before) {
  absl::string_view relative = key;
  if (!absl::ConsumePrefix(&relative, root) || !absl::StartsWith(relative, prefix)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a listing of '", root, prefix, "' shows '", key, "'. Use a server that lists by prefix"));
  }
  if (!before.empty() && relative <= before) {
    return absl::FailedPreconditionError(absl::StrCat("a listing shows '", key, "' after '", root, before,
                                                      "'. Use a bucket whose listings are in order (not an S3 "
                                                      "directory bucket)"));
  }
  return std::string(relative);
}

absl::Status Append(const S3ListPage& page, const std::string& root, const ListRequest& request, Listing& listing) {
  const auto room = [&] { return listing.objects.size() + listing.folders.size() < request.limit; };
  std::string before = listing.objects.empty() ? request.start_after : listing.objects.back().key;
  for (const ListedObject& object : page.objects) {
    if (absl::EndsWith(object.key, "/")) continue;  // consoles make them, to show empty folders
    LS_ASSIGN_OR_RETURN(std::string key, Checked(object.key, root, request.prefix, before));
    before = key;
    if (room()) {
      listing.objects.push_back({std::move(key), object.size});
    } else {
      listing.more = true;
    }
  }
  before = listing.folders.empty() ? "" : listing.folders.back();
  for (const std::string& folder : page.folders) {
    LS_ASSIGN_OR_RETURN(std::string key, Checked(folder, root, request.prefix, before));
    before = key;
    if (room()) {
      listing.folders.push_back(std::move(key));
    } else {
      listing.more = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Listing> S3ObjectStore::List(const ListRequest& request) {
  LS_RETURN_IF_ERROR(CheckKeyPrefix(request.prefix));
  const std::string root = FullKey("");
  Listing listing;
  std::string token;
  while (true) {
    const size_t have = listing.objects.size() + listing.folders.size();
    Call call = {"GET", ""};
    call.query = {{"list-type", "2"}, {"max-keys", absl::StrCat(std::min(kPageKeys, request.limit - have))}};
    if (const std::string prefix = absl::StrCat(root, request.prefix); !prefix.empty()) call.query["prefix"] = prefix;
    if (request.by_folder) call.query.emplace("delimiter", "/");
    if (!token.empty()) {
      call.query["continuation-token"] = token;
    } else if (!request.start_after.empty()) {
      call.query["start-after"] = absl::StrCat(root, request.start_after);
    }
    S3ListPage page;
    call.take = [&page](const HttpAnswer& answer) {
      LS_ASSIGN_OR_RETURN(page, ParseListPage(answer.body));
      return absl::OkStatus();
    };
    LS_RETURN_IF_ERROR(Perform(call).status());
    LS_RETURN_IF_ERROR(Append(page, root, request, listing));
    if (page.next_token.empty()) return listing;
    if (listing.objects.size() + listing.folders.size() >= request.limit) {
      listing.more = true;
      return listing;
    }
    if (page.next_token == token) {
      return absl::UnavailableError(absl::StrCat(Place(call), ": the listing does not end"));
    }
    token = page.next_token;
  }
}

absl::StatusOr<std::vector<Upload>> S3ObjectStore::ListUploads(absl::string_view prefix) {
  LS_RETURN_IF_ERROR(CheckKeyPrefix(prefix));
  const std::string root = FullKey("");
  std::vector<Upload> uploads;
  std::string next_key, next_id;
  while (true) {
    Call call = {"GET", ""};
    call.query = {{"uploads", ""}, {"prefix", absl::StrCat(root, prefix)}};
    if (!next_key.empty()) call.query["key-marker"] = next_key;
    if (!next_id.empty()) call.query["upload-id-marker"] = next_id;
    S3UploadsPage page;
    call.take = [&page](const HttpAnswer& answer) {
      LS_ASSIGN_OR_RETURN(page, ParseUploadsPage(answer.body));
      return absl::OkStatus();
    };
    LS_RETURN_IF_ERROR(Perform(call).status());
    for (Upload& upload : page.uploads) {
      LS_ASSIGN_OR_RETURN(upload.key, Checked(upload.key, root, std::string(prefix), ""));
      uploads.push_back(std::move(upload));
    }
    if (!page.truncated) return uploads;
    if (page.next_key == next_key && page.next_id == next_id) {
      return absl::UnavailableError(absl::StrCat(Place(call), ": the listing does not end"));
    }
    next_key = page.next_key;
    next_id = page.next_id;
  }
}

}  // namespace lockstep
