// The memory layout of a value. Parameters, optimizer slots, buckets, digests and transfers are always row-major; every
// other layout belongs to one device, exists only inside a plan, and is opaque to everything but that device.
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
  // The device's own description of the layout; empty for row-major. Equal encodings mean equal layouts.
  std::string encoding;
  // Bytes of a value in this layout, padding included; 0 for row-major, whose size follows from dtype and shape.
  size_t bytes = 0;
  // For a blocked layout, which stores [N, C, d...] as [N, C / block, d..., block]: the block. The channels are padded
  // with zeros, which every kernel that writes the value preserves. 0 for every other layout.
  int channel_block = 0;

  bool row_major() const { return encoding.empty(); }
  friend bool operator==(const Layout& a, const Layout& b) { return a.encoding == b.encoding; }
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_LAYOUT_H_
