#include "worker/device/choice/cuda_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status/status_macros.h"
#include "common/version/version.h"

namespace lockstep::device {
namespace {

constexpr char kFileName[] = "liblockstep_cuda.so";
constexpr char kVariable[] = "LOCKSTEP_CUDA_LIBRARY";
constexpr char kFunction[] = "LockstepCudaLibrary";
constexpr absl::string_view kNotFound = ": cannot open shared object file";

// Which of Python's packages has a library of CUDA's, for the message about one that is missing.
struct Source {
  absl::string_view prefix;
  absl::string_view package;
};
constexpr std::array<Source, 6> kSources = {{{"libcudnn", "nvidia-cudnn-cu13"},
                                             {"libcublas", "nvidia-cublas"},
                                             {"libnvrtc", "nvidia-cuda-nvrtc"},
                                             {"libcudart", "nvidia-cuda-runtime"},
                                             {"libnvJitLink", "nvidia-nvjitlink"},
                                             {"libnccl", "nvidia-nccl-cu13"}}};

constexpr char kNoDriver[] = "there is no NVIDIA driver on this machine (no libcuda.so.1)";

bool HasDriver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

std::filesystem::path BesideProgram() {
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) return {};
  return std::filesystem::path(std::string(program, static_cast<size_t>(size))).replace_filename(kFileName);
}

absl::StatusOr<const CudaLibrary*> FindLibrary() {
  const char* const named = std::getenv(kVariable);
  if (named != nullptr && named[0] != '\0') {
    absl::StatusOr<const CudaLibrary*> library = OpenCudaLibrary(named);
    if (library.ok()) return library;
    return absl::FailedPreconditionError(absl::StrCat(kVariable, ": ", library.status().message()));
  }
  // CUDA's libraries take 100 MiB of a process, and most of the time that it needs to start.
  if (!HasDriver()) return absl::FailedPreconditionError(kNoDriver);
  const std::filesystem::path beside = BesideProgram();
  std::error_code unreadable;
  if (!beside.empty() && std::filesystem::exists(beside, unreadable)) return OpenCudaLibrary(beside.string());
  absl::StatusOr<const CudaLibrary*> library = OpenCudaLibrary(kFileName);
  if (!absl::IsNotFound(library.status())) return library;
  return absl::FailedPreconditionError(
      absl::StrCat("no CUDA: ", kFileName, " lies neither beside ", beside.parent_path().string(),
                   "'s programs nor where the loader looks; put it there, or name it in ", kVariable));
}

}  // namespace

std::string ExplainLoadError(absl::string_view path, absl::string_view error) {
  const size_t end = error.find(kNotFound);
  const absl::string_view missing = error.substr(0, end);
  if (end == absl::string_view::npos || missing == path) return absl::StrReplaceAll(error, {{"\n", " "}});
  std::string advice = absl::StrCat(path, " needs ", missing, ", which the loader does not find; ");
  if (absl::StartsWith(missing, "libcuda.so")) {
    return absl::StrCat(advice, "it comes with NVIDIA's driver: install that");
  }
  for (const Source& source : kSources) {
    if (!absl::StartsWith(missing, source.prefix)) continue;
    return absl::StrCat(advice, "install CUDA 13, or Python's package ", source.package,
                        ", and name the folder of the file in LD_LIBRARY_PATH");
  }
  return absl::StrCat(advice, "install it, or name its folder in LD_LIBRARY_PATH");
}

absl::StatusOr<const CudaLibrary*> OpenCudaLibrary(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const text = dlerror();
    const std::string error = text == nullptr ? absl::StrCat(path, ": cannot be loaded") : text;
    const std::string line = ExplainLoadError(path, error);
    // A file that is not there at all is another case than one that cannot be used.
    const bool absent = absl::StartsWith(error, absl::StrCat(path, kNotFound)) && absl::StrContains(error, "No such");
    if (absent) return absl::NotFoundError(line);
    const bool incomplete = absl::StrContains(error, kNotFound);
    // The first thing to install comes first.
    const bool no_driver = incomplete && !HasDriver();
    return absl::FailedPreconditionError(no_driver ? absl::StrCat(kNoDriver, "; besides, ", line) : line);
  }
  using Function = const CudaLibrary*();
  auto* const function = reinterpret_cast<Function*>(dlsym(handle, kFunction));
  if (function == nullptr) {
    dlclose(handle);
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no CUDA library of Lockstep: it has no function ", kFunction));
  }
  const CudaLibrary* const library = function();
  const bool same_border = library->abi == kCudaLibraryAbi;
  if (same_border && absl::string_view(library->program_version) == kVersion) return library;
  const std::string found =
      same_border ? absl::StrCat("of ", library->program_version) : absl::StrCat("of interface ", library->abi);
  const std::string expected =
      same_border ? std::string(kVersion) : absl::StrCat(kVersion, ", interface ", kCudaLibraryAbi);
  dlclose(handle);
  return absl::FailedPreconditionError(absl::StrCat(path, " is ", found, ", this program is ", expected,
                                                    "; use the program and the library of one build"));
}

absl::StatusOr<const CudaLibrary*> LoadCudaLibrary() {
  static const absl::StatusOr<const CudaLibrary*> library = FindLibrary();
  return library;
}

absl::StatusOr<CudaReport> FindCuda() {
  LS_ASSIGN_OR_RETURN(const CudaLibrary* const library, LoadCudaLibrary());
  return library->report();
}

}  // namespace lockstep::device
