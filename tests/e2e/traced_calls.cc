#include "tests/e2e/traced_calls.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::e2e {
namespace {

// Where a call keeps what it is about.
enum class Shape {
  kFile,    // (descriptor)
  kPath,    // (path)
  kAt,      // (folder, path)
  kTwo,     // (path, path)
  kTwoAt,   // (folder, path, folder, path)
  kNameAt,  // (text, folder, path): a symbolic link
  kOpen,    // (path, flags)
  kOpenAt,  // (folder, path, flags)
};

struct KnownCall {
  uint32_t number;
  const char* name;
  Shape shape;
};

constexpr KnownCall kCalls[] = {
    {SYS_open, "open", Shape::kOpen},
    {SYS_openat, "openat", Shape::kOpenAt},
    {SYS_creat, "creat", Shape::kPath},
    {SYS_write, "write", Shape::kFile},
    {SYS_writev, "writev", Shape::kFile},
    {SYS_pwrite64, "pwrite64", Shape::kFile},
    {SYS_pwritev, "pwritev", Shape::kFile},
    {SYS_pwritev2, "pwritev2", Shape::kFile},
    {SYS_fsync, "fsync", Shape::kFile},
    {SYS_fdatasync, "fdatasync", Shape::kFile},
    {SYS_ftruncate, "ftruncate", Shape::kFile},
    {SYS_fallocate, "fallocate", Shape::kFile},
    {SYS_truncate, "truncate", Shape::kPath},
    {SYS_rename, "rename", Shape::kTwo},
    {SYS_renameat, "renameat", Shape::kTwoAt},
    {SYS_renameat2, "renameat2", Shape::kTwoAt},
    {SYS_link, "link", Shape::kTwo},
    {SYS_linkat, "linkat", Shape::kTwoAt},
    {SYS_symlink, "symlink", Shape::kTwo},
    {SYS_symlinkat, "symlinkat", Shape::kNameAt},
    {SYS_unlink, "unlink", Shape::kPath},
    {SYS_unlinkat, "unlinkat", Shape::kAt},
    {SYS_mkdir, "mkdir", Shape::kPath},
    {SYS_mkdirat, "mkdirat", Shape::kAt},
    {SYS_rmdir, "rmdir", Shape::kPath},
};

// Text of another process, up to its zero.
std::string TextAt(pid_t thread, uint64_t address) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  while (text.size() < kPage) {
    char part[kPage];
    const size_t wanted = kPage - address % kPage;  // what lies behind the page may not be there
    iovec to = {part, wanted};
    iovec from = {reinterpret_cast<void*>(address), wanted};
    const ssize_t got = process_vm_readv(thread, &to, 1, &from, 1, 0);
    if (got <= 0) return text;
    const char* end = std::find(part, part + got, '\0');
    text.append(part, static_cast<size_t>(end - part));
    if (end != part + got) return text;
    address += static_cast<uint64_t>(got);
  }
  return text;
}

std::string LinkTarget(const std::string& link) {
  std::error_code ignored;
  return std::filesystem::read_symlink(link, ignored).string();
}

std::string PathOfDescriptor(pid_t thread, uint64_t descriptor) {
  return LinkTarget(absl::StrCat("/proc/", thread, "/fd/", static_cast<int>(descriptor)));
}

std::string PathAt(pid_t thread, uint64_t folder, uint64_t address) {
  const std::string path = TextAt(thread, address);
  if (absl::StartsWith(path, "/")) return path;
  const std::string place = static_cast<int>(folder) == AT_FDCWD ? LinkTarget(absl::StrCat("/proc/", thread, "/cwd"))
                                                                 : PathOfDescriptor(thread, folder);
  return absl::StrCat(place, "/", path);
}

bool OpensForWriting(uint64_t flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

constexpr uint64_t kHere = static_cast<uint32_t>(AT_FDCWD);

}  // namespace

bool InstallCallFilter() {
  constexpr size_t kCount = std::size(kCalls);
  std::array<sock_filter, kCount + 5> program = {};
  size_t at = 0;
  program[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  program[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, kCount + 1);  // others: allowed
  program[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (size_t i = 0; i < kCount; ++i) {
    program[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[i].number, static_cast<uint8_t>(kCount - i), 0);
  }
  program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  const sock_fprog filter = {static_cast<uint16_t>(at), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::optional<StoppedCall> CallOf(pid_t thread, const user_regs_struct& registers) {
  const auto known = std::find_if(std::begin(kCalls), std::end(kCalls),
                                  [&](const KnownCall& call) { return call.number == registers.orig_rax; });
  if (known == std::end(kCalls)) return std::nullopt;
  const uint64_t a = registers.rdi, b = registers.rsi, c = registers.rdx, d = registers.r10;
  StoppedCall call;
  call.name = known->name;
  call.syncs = known->number == SYS_fsync || known->number == SYS_fdatasync;
  switch (known->shape) {
    case Shape::kFile:
      call.descriptor = static_cast<int>(a);
      call.path = PathOfDescriptor(thread, a);
      break;
    case Shape::kOpen:
      if (!OpensForWriting(b)) return std::nullopt;
      [[fallthrough]];
    case Shape::kPath:
      call.path = PathAt(thread, kHere, a);
      break;
    case Shape::kOpenAt:
      if (!OpensForWriting(c)) return std::nullopt;
      [[fallthrough]];
    case Shape::kAt:
      call.path = PathAt(thread, a, b);
      break;
    case Shape::kTwo:
      call.path = PathAt(thread, kHere, a);
      call.second = PathAt(thread, kHere, b);
      break;
    case Shape::kTwoAt:
      call.path = PathAt(thread, a, b);
      call.second = PathAt(thread, c, d);
      break;
    case Shape::kNameAt:
      call.path = PathAt(thread, b, c);
      break;
  }
  return call;
}

}  // namespace lockstep::e2e
