// How a value's elements lie in memory. Row-major is the only layout that parameters, slots, buckets, digests and
// transfers ever have; every other layout belongs to one device, exists inside a plan only, and is opaque to all but
// that device.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_LAYOUT_H_
#define LOCKSTEP_WORKER_DEVICE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::device {

struct Layout {
  // Empty for row-major; else a name such as "nChw8c" for messages.
  std::string name;
  // What the device needs to use the layout again; empty for row-major. Equal encodings mean equal layouts.
  std::string encoding;
  // Bytes of a value in this layout, padding included; 0 for row-major, whose size follows from dtype and shape.
  size_t bytes = 0;
  // Of [N, C, d...] as [N, C / block, d..., block], the last channels filled up with zeros, which whoever writes the
  // value keeps; 0 for every other layout.
  int channel_block = 0;

  bool row_major() const { return encoding.empty(); }
  friend bool operator==(const Layout& a, const Layout& b) { return a.encoding == b.encoding; }
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_LAYOUT_H_
