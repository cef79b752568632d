// CSV tables. The last byte of the input chooses the delimiter and whether there is a header.
#include "tests/fuzz/open_data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lockstep::fuzz::FuzzFile file(lockstep::fuzz::Text(data, size));
  const uint8_t choice = size == 0 ? 0 : data[size - 1];
  lockstep::job::DataFiles files;
  files.set_inputs(file.path());
  files.set_format(lockstep::job::DataFiles::FORMAT_CSV);
  files.set_label_field("-1");
  if ((choice & 1) != 0) files.set_delimiter(";");
  if ((choice & 2) != 0) files.set_header(lockstep::job::DataFiles::HEADER_ABSENT);
  lockstep::worker::FeedOptions options = lockstep::fuzz::FuzzOptions();
  if ((choice & 4) != 0) options.label_classes = 0;
  lockstep::fuzz::OpenAndRead(files, options);
  return 0;
}
