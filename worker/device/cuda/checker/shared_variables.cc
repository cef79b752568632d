#include "worker/device/cuda/checker/shared_variables.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "absl/strings/match.h"
#include "common/status/check.h"

namespace lockstep::device::cuda::checker {
namespace {

// A file, mapped as long as this lives.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts = {};
    LS_CHECK(file >= 0 && fstat(file, &facts) == 0, "a program can read its own file");
    bytes_ = static_cast<size_t>(facts.st_size);
    memory_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    LS_CHECK(memory_ != MAP_FAILED, "a program can map its own file");
  }
  ~Mapped() { munmap(memory_, bytes_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  template <typename T>
  const T* At(uint64_t offset) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(memory_) + offset);
  }

 private:
  size_t bytes_ = 0;
  void* memory_ = nullptr;
};

SharedVariables ReadVariables(const std::string& path, size_t bytes) {
  SharedVariables all{.bytes = bytes, .variables = {}, .of_byte = std::vector<uint16_t>(bytes)};
  const Mapped file(path);
  const auto* header = file.At<ElfW(Ehdr)>(0);
  const auto* sections = file.At<ElfW(Shdr)>(header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = file.At<ElfW(Sym)>(sections[s].sh_offset);
    const char* names = file.At<char>(sections[sections[s].sh_link].sh_offset);
    for (size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); ++i) {
      const ElfW(Sym)& symbol = symbols[i];
      const char* name = names + symbol.st_name;
      // _ZZ begins the names of variables of functions, _ZGV those of what guards their first use.
      if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || !absl::StartsWith(name, "_ZZ")) continue;
      all.variables.push_back({name, symbol.st_value, symbol.st_size});
      std::fill_n(all.of_byte.begin() + static_cast<int64_t>(symbol.st_value), symbol.st_size,
                  static_cast<uint16_t>(all.variables.size()));
    }
  }
  LS_CHECK(all.variables.size() < 65536, "so many __shared__ variables have numbers");
  LS_CHECK(!all.variables.empty(), "a program with __shared__ variables has its table of symbols");
  return all;
}

// Read once per module of the process.
const SharedVariables& VariablesOf(const std::string& path, size_t bytes) {
  static std::mutex mutex;
  static std::map<std::string, SharedVariables> all;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = all.find(path);
  return known != all.end() ? known->second : all.emplace(path, ReadVariables(path, bytes)).first->second;
}

struct ModuleSearch {
  uintptr_t address = 0;
  uintptr_t base = 0;
  size_t bytes = 0;
  std::string path;
};

int InModule(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<ModuleSearch*>(data);
  const auto base = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (base == 0 || info->dlpi_phdr[i].p_type != PT_TLS) continue;
    const size_t bytes = info->dlpi_phdr[i].p_memsz;
    if (search.address - base >= bytes) continue;
    search.base = base;
    search.bytes = bytes;
    search.path = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

SharedMemory::Module* SharedMemory::Of(uintptr_t address) {
  for (Module& module : modules_) {
    if (address - module.base < module.variables->bytes) return &module;
  }
  ModuleSearch search{.address = address, .base = 0, .bytes = 0, .path = {}};
  if (dl_iterate_phdr(&InModule, &search) == 0) return nullptr;
  modules_.push_back({.base = search.base,
                      .variables = &VariablesOf(search.path, search.bytes),
                      .shadow = std::make_unique<Shadow>(search.bytes)});
  return &modules_.back();
}

const SharedMemory::Found* SharedMemory::Find(uintptr_t address, size_t bytes) {
  Module* const module = Of(address);
  if (module == nullptr) return nullptr;
  found_ = {.shadow = module->shadow.get(), .offset = address - module->base, .variable = nullptr};
  const SharedVariables& all = *module->variables;
  if (found_.offset + bytes > all.bytes) return &found_;
  const uint16_t first = all.of_byte[found_.offset];
  if (first != 0 && first == all.of_byte[found_.offset + bytes - 1]) found_.variable = &all.variables[first - 1];
  return &found_;
}

}  // namespace lockstep::device::cuda::checker
