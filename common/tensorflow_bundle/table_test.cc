#include "common/tensorflow_bundle/table.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest/crc32c.h"
#include "common/tensorflow_bundle/table_layout.h"
#include "common/tensorflow_bundle/varint.h"

namespace lockstep {
namespace {

using Catch::Contains;

// Keys that share beginnings, in several blocks of 128 bytes.
Table SmallTable() {
  Table table = {{"", "header"}, {std::string("\0slice", 6), ""}, {"\xff\xff", "last"}};
  for (int i = 0; i < 40; ++i) table[absl::StrFormat("model/layer/%02d/weight", i)] = std::string(i % 7, 'v');
  return table;
}

std::string Fixed32(uint32_t value) {
  std::string bytes;
  AppendFixed32(value, bytes);
  return bytes;
}

std::string Varints(std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) AppendVarint(value, bytes);
  return bytes;
}

std::string Block(const std::string& content, char type = '\0') {
  return content + type + Fixed32(MaskCrc32c(Crc32c(content + type)));
}

const std::string kEnd("\0\0\0\0\1\0\0\0", 8);  // of a block: one restart point

// A file that begins with `data`, and whose index names these blocks of it.
std::string FileWith(const std::string& data, const std::vector<BlockHandle>& handles) {
  const std::string& end = kEnd;
  const std::string meta = Block(end);
  std::string index;
  for (const BlockHandle& handle : handles) {
    const std::string place = EncodeHandle(handle);
    index += Varints({0, 1, place.size()}) + "z" + place;
  }
  index += end;
  std::string footer = Varints({data.size(), end.size(), data.size() + meta.size(), index.size()});
  footer.resize(40);
  return data + meta + Block(index) + footer + Fixed32(0x8b80fb57) + Fixed32(0xdb477524);
}

// A file of one block of data with these entries, whatever they are.
std::string FileOf(const std::string& entries, char type = '\0') {
  return FileWith(Block(entries + kEnd, type), {{0, entries.size() + kEnd.size()}});
}

std::string RefusedTable(const std::string& file) {
  const absl::StatusOr<Table> table = ParseTable(file, "x.index");
  REQUIRE_FALSE(table.ok());
  CHECK_THAT(std::string(table.status().message()), Contains("x.index"));
  return std::string(table.status().message());
}

TEST_CASE("table: what was written is read, in one block or in many", "[tensorflow]") {
  const size_t block_bytes = GENERATE(size_t{1}, size_t{128}, kTableBlockBytes);
  for (const Table& table : {SmallTable(), Table{}, Table{{"only", "one"}}, Table{{"long", std::string(1000, 'l')}}}) {
    const absl::StatusOr<Table> read = ParseTable(EncodeTable(table, block_bytes), "x.index");
    REQUIRE(read.status() == absl::OkStatus());
    CHECK(*read == table);
  }
}

TEST_CASE("table: no cut file is read, and no flipped bit changes what is read", "[tensorflow]") {
  const Table table = SmallTable();
  const std::string file = EncodeTable(table, 128);
  for (size_t size = 0; size < file.size(); ++size) CHECK_FALSE(ParseTable(file.substr(0, size), "x").ok());
  int harmless = 0;
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string changed = file;
    changed[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const absl::StatusOr<Table> read = ParseTable(changed, "x");
    if (!read.ok()) continue;
    CHECK(*read == table);
    ++harmless;
  }
  // Those of the zeros before the magic number.
  CHECK(harmless < 8 * 40);
}

TEST_CASE("table: what its checksums do not tell is refused too", "[tensorflow]") {
  const auto entry = [](uint64_t shared, const std::string& rest, const std::string& value) {
    return Varints({shared, rest.size(), value.size()}) + rest + value;
  };
  REQUIRE(ParseTable(FileOf(entry(0, "a", "1") + entry(1, "b", "2")), "x").value() == Table{{"a", "1"}, {"ab", "2"}});

  CHECK_THAT(RefusedTable(FileOf(entry(0, "a", "") + entry(0, "a", ""))), Contains("not in order"));
  CHECK_THAT(RefusedTable(FileOf(entry(0, "a", "") + entry(2, "b", ""))), Contains("shares more bytes"));
  CHECK_THAT(RefusedTable(FileOf(Varints({0, 1, 100}) + "a")), Contains("does not end"));
  CHECK_THAT(RefusedTable(FileOf(Varints({0, ~uint64_t{0}, ~uint64_t{0}}) + "a")), Contains("does not end"));
  CHECK_THAT(RefusedTable(FileOf(std::string(12, '\xff'))), Contains("does not end"));
  CHECK_THAT(RefusedTable(FileOf(entry(0, std::string(kMaxTableKeyBytes + 1, 'k'), ""))), Contains("at most"));
  CHECK_THAT(RefusedTable(std::string(100, 'x')), Contains("TensorFlow V2"));
}

TEST_CASE("table: a compressed one is refused with what to do", "[tensorflow]") {
  CHECK_THAT(RefusedTable(FileOf("", 1)), Contains("Snappy") && Contains("tf.train.Checkpoint.write"));
  CHECK_THAT(RefusedTable(FileOf("", 2)), Contains("compressed"));
}

// Else a small file would cost the square of its size.
TEST_CASE("table: a block is named once, and shares no bytes with another", "[tensorflow]") {
  const std::string empty = Block(kEnd);
  REQUIRE(ParseTable(FileWith(empty + empty, {{0, kEnd.size()}, {empty.size(), kEnd.size()}}), "x").ok());
  CHECK_THAT(RefusedTable(FileWith(empty, {{0, kEnd.size()}, {0, kEnd.size()}})), Contains("overlap"));
  // A block that lies in the value of an entry of another one.
  const std::string entry = Varints({0, 1, empty.size()}) + "a";
  const std::string outer = entry + empty + kEnd;
  const BlockHandle whole{0, outer.size()}, inner{entry.size(), kEnd.size()};
  REQUIRE(ParseTable(FileWith(Block(outer), {inner}), "x").ok());
  CHECK_THAT(RefusedTable(FileWith(Block(outer), {whole, inner})), Contains("overlap"));
  CHECK_THAT(RefusedTable(FileWith(Block(outer), {inner, whole})), Contains("overlap"));
}

TEST_CASE("table: a file of too many entries is refused", "[tensorflow]") {
  std::string entries;
  for (size_t i = 0; i <= kMaxTableEntries; ++i) entries += Varints({0, 7, 0}) + absl::StrFormat("%07d", i);
  CHECK_THAT(RefusedTable(FileOf(entries)), Contains("at most 1000000"));
}

// Keys of 60,000 bytes each, for 4 bytes of the file.
TEST_CASE("table: a small file does not become a large table", "[tensorflow]") {
  std::string entries = Varints({0, 60000, 0}) + std::string(60000, 'a');
  for (int i = 0; i < 1200; ++i)
    entries += Varints({60000, 2, 0}) + absl::StrFormat("%c%c", 'a' + i / 60, '0' + i % 60);
  CHECK_THAT(RefusedTable(FileOf(entries)), Contains("its keys have more than"));
}

}  // namespace
}  // namespace lockstep
