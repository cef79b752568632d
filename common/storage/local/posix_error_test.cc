// Which errors of a file system are waited for: the table of docs/operating.md, "When the storage refuses".
#include "common/storage/local/posix_error.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/storage/may_pass.h"

namespace lockstep {
namespace {

using Catch::Contains;

struct Row {
  int error;
  bool outage;    // waited for whenever a job has something to lose
  bool may_pass;  // waited for while the job runs
};

TEST_CASE("storage: every errno is waited for as the documentation says", "[storage]") {
  const Row rows[] = {{ENOSPC, true, true},     {EDQUOT, true, true},         {EFBIG, true, true},
                      {EMFILE, true, true},     {ENFILE, true, true},         {EROFS, true, true},
                      {EIO, true, true},        {ESTALE, true, true},         {ETIMEDOUT, true, true},
                      {ENODEV, true, true},     {ENOTCONN, true, true},       {EHOSTDOWN, true, true},
                      {ENXIO, true, true},      {EREMOTEIO, true, true},      {ENOMEM, true, true},
                      {EACCES, false, true},    {EPERM, false, true},         {ENOENT, false, true},
                      {ENOTDIR, false, false},  {EISDIR, false, false},       {ELOOP, false, false},
                      {EINVAL, false, false},   {ENAMETOOLONG, false, false}, {EEXIST, false, false},
                      {ENOTEMPTY, false, false}};
  for (const Row& row : rows) {
    CAPTURE(row.error, std::strerror(row.error));
    const absl::Status read = PosixError(row.error, "read", "/job/latest");
    const absl::Status written = PosixWriteError(row.error, "/job/latest", 4096);
    CHECK(IsOutage(read) == row.outage);
    CHECK(MayPass(read) == row.may_pass);
    CHECK(written.code() == read.code());
    CHECK_THAT(std::string(read.message()), Contains("/job/latest"));
    CHECK_THAT(std::string(written.message()), Contains("/job/latest"));
  }
}

TEST_CASE("storage: bytes that are wrong, mistakes of the program and a newer chief are not waited for", "[storage]") {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::DataLossError(""), absl::InternalError(""), absl::AbortedError(""),
        absl::FailedPreconditionError(""), absl::AlreadyExistsError(""), absl::OutOfRangeError("")}) {
    CAPTURE(status.ToString());
    CHECK_FALSE(IsOutage(status));
    CHECK_FALSE(MayPass(status));
  }
}

}  // namespace
}  // namespace lockstep
