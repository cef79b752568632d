#include "deploy/cli/tokenize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"
#include "worker/data/byte_source.h"
#include "worker/data/token_file.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;

absl::Status CheckOptions(const TokenizeOptions& options) {
  if ((options.eval_fraction != 0) != !options.eval_out.empty()) {
    return absl::InvalidArgumentError("--eval-fraction and --eval-out belong together; give both or neither");
  }
  if (!options.eval_out.empty() && !(options.eval_fraction > 0 && options.eval_fraction < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--eval-fraction is a part of the text, above 0 and below 1, not ", options.eval_fraction));
  }
  std::vector<std::string> outputs = {options.out};
  if (!options.eval_out.empty()) outputs.push_back(options.eval_out);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<std::string> others = options.texts;
    if (i > 0) others.push_back(options.out);
    for (const std::string& other : others) {
      std::error_code error;  // files that are not there are not the same
      if (fs::path(outputs[i]).lexically_normal() != fs::path(other).lexically_normal() &&
          !fs::equivalent(outputs[i], other, error)) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(outputs[i], " would replace ", other, "; name another file"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTexts(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    LS_ASSIGN_OR_RETURN(worker::ByteSource source, worker::ByteSource::Open(path, /*pulse=*/nullptr));
    size_t got = kPieceBytes;
    while (got == kPieceBytes) {
      const size_t before = text.size();
      if (before > static_cast<size_t>(worker::kMostTokens)) {
        return absl::ResourceExhaustedError(absl::StrCat(path, ": with it the text has more than ", worker::kMostTokens,
                                                         " bytes, the most that one file of tokens holds"));
      }
      text.resize(before + kPieceBytes);
      LS_ASSIGN_OR_RETURN(
          got, source.ReadSome(absl::MakeSpan(reinterpret_cast<std::byte*>(text.data() + before), kPieceBytes)));
      text.resize(before + got);
    }
  }
  return text;
}

absl::Status WriteAll(WritableFile& file, absl::string_view text) {
  LS_RETURN_IF_ERROR(file.Append(worker::TokenFileHeader(static_cast<int64_t>(text.size()))));
  for (size_t at = 0; at < text.size(); at += kPieceBytes) {
    LS_RETURN_IF_ERROR(file.Append(worker::BytesAsTokens(text.substr(at, kPieceBytes))));
  }
  LS_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

// Written under another name, synced, and moved over `path`: nobody ever sees half of it.
absl::Status WriteTokenFile(const std::string& path, absl::string_view text) {
  const fs::path place(path);
  const std::string name = place.filename().string();
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no name of a file"));
  }
  const std::string folder = place.has_parent_path() ? place.parent_path().string() : ".";
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> storage, LocalStorage::Open(folder));
  const std::string scratch = absl::StrCat(".", name, ".partial");
  LS_RETURN_IF_ERROR(storage->RemoveTree(scratch));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, storage->CreateFile(scratch, Access::kShared));
  absl::Status status = WriteAll(*file, text);
  if (status.ok()) status = storage->Replace(scratch, name);
  if (!status.ok()) storage->RemoveTree(scratch).IgnoreError();
  return status;
}

}  // namespace

absl::StatusOr<TokenCounts> TokenizeBytes(const TokenizeOptions& options, int& exit_code) {
  exit_code = kExitUsage;
  LS_RETURN_IF_ERROR(CheckOptions(options));
  exit_code = kExitBadData;
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTexts(options.texts));
  const auto eval = static_cast<size_t>(std::floor(static_cast<double>(text.size()) * options.eval_fraction));
  const absl::string_view train_text = absl::string_view(text).substr(0, text.size() - eval);
  const absl::string_view eval_text = absl::string_view(text).substr(text.size() - eval);
  if (train_text.size() < 2 || (!options.eval_out.empty() && eval_text.size() < 2)) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", text.size(), " bytes, ", eval_text.size(),
                                                   " of them for evaluation; each file needs two tokens at least, one "
                                                   "to see and one to predict"));
  }
  const auto write = [&](const std::string& path, absl::string_view part) {
    const absl::Status status = WriteTokenFile(path, part);
    exit_code = StorageExitCode(status);
    return status;
  };
  if (!options.eval_out.empty()) LS_RETURN_IF_ERROR(write(options.eval_out, eval_text));
  LS_RETURN_IF_ERROR(write(options.out, train_text));
  return TokenCounts{static_cast<int64_t>(train_text.size()), static_cast<int64_t>(eval_text.size())};
}

}  // namespace lockstep::cli
