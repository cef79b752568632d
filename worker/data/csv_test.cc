#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

job::DataFiles TableFiles(const std::string& path, const std::string& label = "",
                          const std::vector<std::string>& inputs = {}) {
  job::DataFiles files;
  files.set_inputs(path);
  if (!label.empty()) files.set_label_field(label);
  for (const std::string& name : inputs) files.add_input_fields(name);
  return files;
}

FeedOptions Classes(int64_t classes) {
  FeedOptions options;
  options.label_classes = classes;
  return options;
}

TEST_CASE("csv: columns by name, the others as one vector", "[data]") {
  const TestFiles files;
  const std::string path =
      files.Write("t.csv", "id,age,\"weight, kg\",label\nA-1,30,80.5,1\n\"B\"\"2\",31.5,\"60\",0\n\nC,-2,1e3, 2 \n");

  const auto source = MustOpen(TableFiles(path, "", {"weight, kg", "age"}), Classes(3));

  CHECK(source->num_samples() == 3);
  CHECK(source->fields() == std::vector<TensorSpec>{{"inputs", DType::kF32, {2}}, {"labels", DType::kI64, {}}});
  CHECK(AllOf<float>(*source, "inputs") == std::vector<float>{80.5f, 30, 60, 31.5f, 1000, -2});
  CHECK(AllOf<int64_t>(*source, "labels") == std::vector<int64_t>{1, 0, 2});
}

TEST_CASE("csv: without names columns go by position, and all but the label are inputs", "[data]") {
  const TestFiles files;
  const std::string path = files.Write("t.csv", "5,6,0\r\n7,8,1");
  for (const char* label : {"-1", "2"}) {
    const auto source = MustOpen(TableFiles(path, label), Classes(2));
    CHECK(AllOf<float>(*source, "inputs") == std::vector<float>{5, 6, 7, 8});
    CHECK(AllOf<int64_t>(*source, "labels") == std::vector<int64_t>{0, 1});
  }
  FeedOptions integers = Classes(9);
  integers.inputs = {{"anything", DType::kI64, {2}}};
  CHECK(AllOf<int64_t>(*MustOpen(TableFiles(path, "0"), integers), "inputs") == std::vector<int64_t>{6, 0, 8, 1});
  const auto targets = MustOpen(TableFiles(files.Write("u.csv", "1,0.5\n2,-1.25\n"), "1"), FeedOptions{});
  CHECK(AllOf<float>(*targets, "labels") == std::vector<float>{0.5f, -1.25f});
}

TEST_CASE("csv: delimiters, a header that is all numbers, gzip and a byte order mark", "[data]") {
  const TestFiles files;
  job::DataFiles semicolons = TableFiles(files.Write("t.csv", "\xef\xbb\xbfx;label\n1;0\n2;1\n"));
  semicolons.set_delimiter(";");
  CHECK(AllOf<float>(*MustOpen(semicolons, Classes(2)), "inputs") == std::vector<float>{1, 2});
  job::DataFiles tabs = TableFiles(files.Write("t.tsv.gz", Gzip("x\tlabel\n1\t0\n2\t1\n")));
  tabs.set_delimiter("tab");
  CHECK(AllOf<float>(*MustOpen(tabs, Classes(2)), "inputs") == std::vector<float>{1, 2});
  job::DataFiles years = TableFiles(files.Write("y.csv", "2001,2002\n5,1\n"), "2002");
  years.set_header(job::DataFiles::HEADER_PRESENT);
  CHECK(MustOpen(years, Classes(2))->num_samples() == 1);
}

TEST_CASE("csv: what is no table of numbers is refused with its line", "[data]") {
  const TestFiles files;
  const auto refused = [&](const std::string& text, const std::string& part,
                           StatusCode code = StatusCode::kInvalidArgument) {
    INFO(text);
    CheckRefused(TableFiles(files.Write("t.csv", text)), Classes(2), code, part);
  };
  refused("x,label\n1,0\nlots,1\n", "t.csv: line 3: column 'x' holds 'lots', which is no finite number");
  refused("x,label\n1,0\n,1\n", "line 3: column 'x' holds ''");
  refused("5.1,,0\n4.9,3.0,1\n", "line 1: column 1 holds '', which is neither a name nor a finite number");
  refused("5.1,nan,0\n4.9,3.0,1\n", "line 1: column 1 holds 'nan'");
  refused("1,0\r2,1\r", "line 1: a carriage return in the middle of a line");
  refused("x,label\n1,0\nnan,1\n", "which is no finite number");
  refused("x,label\n1,0\n1e999,1\n", "which is no finite number");
  refused("x,label\n1,0\n\n1,0,2\n", "line 4: has 3 cells, and the first line 2");
  refused("x,label\n1,0\n\"a\n\nb\",1\n", "line 3: column 'x' holds 'a\\n\\nb'");
  refused("x,label\n1,0\n\"1\"2,1\n", "line 3: a quoted cell is followed by more");
  refused("x,label\n1,0\n\"1,1\n", "line 3: a quoted cell begins here and never ends", StatusCode::kDataLoss);
  refused("x,label\n1,0\n2,2\n", "line 3: label 1 is 2, the model has the classes 0 to 1");
  refused("x,label\n1,0\n\n2,2\n", "line 4: label 1 is 2");
  refused("x,label\n1,0.5\n", "label of F64");
  refused("x,label\n", "the table has no row");
  refused("x,label\n1,0\n" + std::string("2\0,1", 4) + "\n", "line 3: a zero byte");
  refused("x,x\n1,2\n", "the file has the columns 'x', 'x'");
  refused("x,label\n" + std::string(70000, '1') + ",0\n", "line 2: a cell of more than 65536 bytes");
  CheckRefused(TableFiles(files.Write("t.csv", "x,x,label\n1,2,0\n"), "", {"x"}), Classes(2),
               StatusCode::kInvalidArgument, "more than one column is called 'x'; give its position");
}

TEST_CASE("csv: the limit of memory holds while the table grows", "[data]") {
  const TestFiles files;
  std::string text = "x,label\n";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, i, ",1\n");
  FeedOptions options = Classes(2);
  options.memory_limit_bytes = 16 * 999;
  CheckRefused(TableFiles(files.Write("t.csv", text)), options, StatusCode::kResourceExhausted, "line 1001: ");
  options.memory_limit_bytes = 16 * 1000;
  CHECK(MustOpen(TableFiles(files.Write("t.csv", text)), options)->num_samples() == 1000);
}

TEST_CASE("csv: a line is read only as far as it fits", "[data]") {
  const TestFiles files;
  FeedOptions options = Classes(2);
  options.memory_limit_bytes = int64_t{4} << 20;
  std::string wide = "x,label\n";
  for (int i = 0; i < 100; ++i) wide += std::string(60000, '1') + ",";
  CheckRefused(TableFiles(files.Write("t.csv.gz", Gzip(wide + "0\n"))), options, StatusCode::kResourceExhausted,
               "line 2: the line takes more than");
  std::string cells = "x,label\n" + std::string(200000, ',') + "0\n";
  CheckRefused(TableFiles(files.Write("t.csv.gz", Gzip(cells))), options, StatusCode::kResourceExhausted, "line 2: ");
  // Each line is short, and each has another cell that is long: none of them stays in memory.
  std::string names, rows;
  for (int i = 0; i < 100; ++i) names += absl::StrCat("x", i, ",");
  for (int row = 0; row < 100; ++row) {
    for (int i = 0; i < 100; ++i) rows += (i == row ? std::string(60000, '0') : "0") + ",";
    rows += "1\n";
  }
  CHECK(MustOpen(TableFiles(files.Write("t.csv", names + "label\n" + rows)), options)->num_samples() == 100);
}

TEST_CASE("csv: a table cut anywhere is read up to there or refused", "[data]") {
  const TestFiles files;
  const std::string text = "x,\"label\"\r\n1.5,\"0\"\r\n-2,1\r\n";
  for (size_t size = 0; size < text.size(); ++size) {
    INFO("cut to " << size << " bytes");
    job::DataFiles table = TableFiles(files.Write("t.csv", text.substr(0, size)));
    table.set_format(job::DataFiles::FORMAT_CSV);
    const auto source = OpenDataSource(table, Classes(2));
    if (source.ok()) CHECK((*source)->num_samples() <= 2);
    if (!source.ok()) CHECK_THAT(std::string(source.status().message()), Catch::Contains("t.csv"));
  }
}

}  // namespace
}  // namespace lockstep::worker
