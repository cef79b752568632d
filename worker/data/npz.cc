#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/containers.h"
#include "worker/data/field_choice.h"
#include "worker/data/zip_file.h"

namespace lockstep::worker {
namespace {

constexpr absl::string_view kSuffix = ".npy";

Shape SampleOf(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

}  // namespace

absl::StatusOr<StoredData> ReadNpz(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(const ZipFile zip, ZipFile::Open(files.inputs()));
  std::vector<std::string> names;
  std::vector<const ZipMember*> arrays;
  for (const ZipMember& member : zip.members()) {
    if (!absl::EndsWith(member.name, kSuffix)) continue;
    names.push_back(member.name.substr(0, member.name.size() - kSuffix.size()));
    arrays.push_back(&member);
  }
  if (arrays.empty()) return absl::InvalidArgumentError(absl::StrCat(files.inputs(), ": the archive has no array"));
  LS_ASSIGN_OR_RETURN(const FieldChoice choice, ChooseFields(files, names, "array", /*by_position=*/false, options));
  StoredData data;
  int64_t left = options.memory_limit_bytes;
  std::vector<size_t> wanted = choice.inputs;
  const bool reads_label = choice.label.has_value() && options.labels != Labels::kNone;
  if (reads_label) wanted.push_back(*choice.label);
  for (const size_t field : wanted) {
    LS_ASSIGN_OR_RETURN(ByteSource source, zip.OpenMember(*arrays[field], options.pulse));
    LS_ASSIGN_OR_RETURN(ArrayFile array, ReadArray(source, job::DataFiles::FORMAT_NPY, left));
    left -= array.array.byte_size();
    const Shape& shape = array.array.shape();
    const bool label = field == choice.label;
    StoredField stored{.name = label ? kLabelsField : names[field], .array = data.arrays.size()};
    stored.sample = SampleOf(shape);
    if (data.arrays.empty()) data.num_samples = shape[0];
    if (shape[0] != data.num_samples) {
      return absl::InvalidArgumentError(absl::StrCat(array.path, ": has ", shape[0], " entries, ", data.arrays[0].path,
                                                     " ", data.num_samples, "; all must have one per sample"));
    }
    data.arrays.push_back(StoreArray(names[field], std::move(array)));
    if (label) {
      data.label = std::move(stored);
    } else {
      data.features.push_back(std::move(stored));
    }
  }
  return data;
}

}  // namespace lockstep::worker
