// Loops (inline_functions.h): the nodes of a trip are read once per trip, so that the graph has all trips one behind
// the other. Where the data decide how many there are, the file has to bound them, by a count of trips or by a
// condition that counts: all that there can be are computed, and a choice leaves what the loop gives as it is.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Of all loops of a model together: their trips, and the nodes of the file that are read in them.
constexpr int64_t kMostTrips = 4096;
constexpr int64_t kMostRead = int64_t{1} << 17;

}  // namespace

int OnnxImporter::EndOfLoop(int begin) const {
  const int64_t number = LoopNumber(nodes_.node(begin));
  for (int at = begin + 1;; ++at) {
    const onnx::NodeProto& node = nodes_.node(at);
    if (node.op_type() == "LoopEnd" && node.domain() == kLoopDomain && LoopNumber(node) == number) return at;
  }
}

// The name in the graph of what the file calls `value`. Each trip of a loop gives it anew.
std::string OnnxImporter::NameInTrip(const std::string& value) {
  return value.empty() || trip_.empty() ? value : Fresh(value + trip_);
}

// The nodes between a LoopBegin and its LoopEnd, read once per trip.
class OnnxImporter::Trips : protected Expansion {
 protected:
  Trips(OnnxImporter* importer, const Call& call, int begin, int end)
      : Expansion(importer, call), begin_(begin), end_(end) {}

  // InvalidArgument unless the body takes and gives so many values.
  absl::Status CheckBody(int takes, int gives) const {
    const int has = begin().output_size() - 1;
    if (has == takes && end().input_size() == gives) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("its body takes ", has, " values and gives ", end().input_size(),
                                                   "; it has to take ", takes, " and give ", gives));
  }

  // Reads a trip that is given values of the file, while `running` holds. Returns names for what it gives, which stay
  // when the next trip is read.
  absl::StatusOr<std::vector<std::string>> Read(int64_t trip, const std::string& running,
                                                const std::vector<std::string>& given) {
    importer_->read_in_trips_ += end_ - begin_;
    if (++importer_->trips_ > kMostTrips || importer_->read_in_trips_ > kMostRead) {
      return absl::InvalidArgumentError(absl::StrCat(
          "with it the loops of the model take more than ", kMostTrips, " trips or ", kMostRead,
          " nodes, which are written out. Let the model compute more in a trip, such as on whole sequences; "
          "a loop that the data end needs a count of trips, or a condition that counts them too"));
    }
    LS_RETURN_IF_ERROR(status());
    LS_RETURN_IF_ERROR(Copy(running, begin().output(0)));
    for (size_t i = 0; i < given.size(); ++i) {
      LS_RETURN_IF_ERROR(Copy(given[i], begin().output(static_cast<int>(i) + 1)));
    }
    const std::string outer = importer_->trip_;
    importer_->trip_ = absl::StrCat(outer, "/", trip);
    const absl::Status read = ReadNodes();
    importer_->trip_ = outer;
    LS_RETURN_IF_ERROR(read);
    std::vector<std::string> results;
    for (const std::string& result : end().input()) {
      results.push_back(importer_->Fresh(absl::StrCat(call_.label, ".", trip, ".", results.size())));
      LS_RETURN_IF_ERROR(Copy(result, results.back()));
    }
    Forget();
    return results;
  }

  // What the trips give one after the other, along a new dimension.
  absl::StatusOr<std::string> Stack(const std::vector<std::string>& parts, int64_t axis) {
    if (parts.empty()) {
      return absl::UnimplementedError(
          "takes no trip, so that the shape of what each trip would give is not known. Take it out of the model, or "
          "give it a trip");
    }
    std::vector<std::string> rows;
    for (const std::string& part : parts) {
      LS_ASSIGN_OR_RETURN(ValueInfo info, importer_->InfoOf(part));
      LS_ASSIGN_OR_RETURN(const int64_t at, NormalizeAxis(axis, static_cast<int64_t>(info.shape.size()) + 1));
      info.shape.insert(info.shape.begin() + at, 1);
      rows.push_back(Reshape(part, info.shape));
      axis = at;
    }
    const std::string stacked = rows.size() == 1 ? rows[0] : Add(OpType::kConcat, rows, {{"axis", axis}});
    LS_RETURN_IF_ERROR(status());
    return stacked;
  }

  // Makes `value` the given output of the node, where it has a reader.
  absl::Status GiveOutput(int output, const std::string& value) {
    if (output >= call_.node->output_size() || call_.node->output(output).empty()) return absl::OkStatus();
    return Copy(value, call_.node->output(output));
  }

  // InvalidArgument unless what is carried into a trip and out of it have one type and shape.
  absl::Status CheckSame(const std::string& into, const std::string& out) {
    LS_ASSIGN_OR_RETURN(const ValueInfo before, importer_->InfoOf(into));
    LS_ASSIGN_OR_RETURN(const ValueInfo after, importer_->InfoOf(out));
    if (before == after) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "carries ", DTypeName(before.dtype), " ", ShapeString(before.shape), " into a trip and ",
        DTypeName(after.dtype), " ", ShapeString(after.shape), " out of it; both have to be of one type and shape"));
  }

  // Tells people of the loop. `most`: the data may end it earlier.
  void Note(int64_t trips, bool most) {
    if (!importer_->trip_.empty()) return;
    importer_->model_.notes.loops.push_back(
        absl::StrCat(call_.label, most ? " (at most " : " (", trips, trips == 1 ? " trip)" : " trips)"));
  }

  absl::Status Copy(const std::string& value, const std::string& name) {
    LS_RETURN_IF_ERROR(importer_->Find(value).status());
    importer_->Alias(name, value);
    return absl::OkStatus();
  }

 private:
  const onnx::NodeProto& begin() const { return importer_->nodes_.node(begin_); }
  const onnx::NodeProto& end() const { return importer_->nodes_.node(end_); }

  absl::Status ReadNodes() {
    for (int at = begin_ + 1; at < end_;) {
      const onnx::NodeProto& node = importer_->nodes_.node(at);
      if (IsConstant(node) && importer_->values_.count(node.output(0)) != 0) {
        ++at;
        continue;
      }
      LS_ASSIGN_OR_RETURN(at, importer_->AddNode(at));
    }
    return absl::OkStatus();
  }

  // A tensor that the file states, which all trips share.
  static bool IsConstant(const onnx::NodeProto& node) {
    return node.op_type() == "Constant" && node.output_size() == 1;
  }

  // What the trip gave.
  void Forget() {
    for (int at = begin_; at < end_; ++at) {
      if (IsConstant(importer_->nodes_.node(at))) continue;
      for (const std::string& output : importer_->nodes_.node(at).output()) {
        importer_->values_.erase(output);
        importer_->stops_.erase(output);
      }
    }
  }

  const int begin_;
  const int end_;
};

// Loop: takes a count of trips, a condition and what is carried from trip to trip; either of the first two may be left
// out. Gives what is carried, and what each trip adds to a list.
class OnnxImporter::Loop : private Trips {
 public:
  Loop(OnnxImporter* importer, const Call& call, int begin, int end)
      : Trips(importer, call, begin, end), carried_(call.node->input().begin(), call.node->input().end()) {
    carried_.erase(carried_.begin(), carried_.begin() + std::min<int64_t>(2, call.node->input_size()));
    given_ = carried_;
  }

  absl::Status Run() {
    const auto carries = static_cast<int>(carried_.size());
    lists_.resize(static_cast<size_t>(std::max(0, call_.node->output_size() - carries)));
    LS_ASSIGN_OR_RETURN(const RawAttributes raw, importer_->ReadAttributes(*call_.node));
    LS_RETURN_IF_ERROR(OnlyAttributes(raw, {}));
    LS_RETURN_IF_ERROR(CheckBody(carries + 2, carries + 1 + static_cast<int>(lists_.size())));
    LS_ASSIGN_OR_RETURN(const std::optional<int64_t> most, MostTrips());
    std::string running = call_.node->input_size() > 1 ? call_.node->input(1) : "";
    if (running.empty()) running = Constant(Tensor::Of<bool>({}, {true}));
    bool open = false;
    int64_t trip = 0;
    for (; !most.has_value() || trip < *most; ++trip) {
      LS_ASSIGN_OR_RETURN(const std::optional<bool> runs, importer_->KnownCondition(running));
      if (runs == std::optional(false)) break;
      open = open || !runs.has_value();
      if (!runs.has_value()) LS_RETURN_IF_ERROR(CheckOpen(running));
      std::vector<std::string> given = {Constant(Tensor::Of<int64_t>({}, {trip})), running};
      given.insert(given.end(), carried_.begin(), carried_.end());
      LS_ASSIGN_OR_RETURN(const std::vector<std::string> results, Read(trip, running, given));
      LS_RETURN_IF_ERROR(Take(results, runs.has_value() ? "" : running));
      LS_ASSIGN_OR_RETURN(running, Goes(running, runs.has_value(), results[0]));
    }
    Note(trip, open);
    for (int i = 0; i < carries; ++i) LS_RETURN_IF_ERROR(GiveOutput(i, given_[static_cast<size_t>(i)]));
    for (size_t i = 0; i < lists_.size(); ++i) {
      LS_ASSIGN_OR_RETURN(const std::string stacked, Stack(lists_[i], 0));
      LS_RETURN_IF_ERROR(GiveOutput(carries + static_cast<int>(i), stacked));
    }
    return status();
  }

 private:
  // The count of trips that the node states.
  absl::StatusOr<std::optional<int64_t>> MostTrips() {
    if (call_.node->input_size() == 0 || call_.node->input(0).empty()) return std::optional<int64_t>();
    LS_ASSIGN_OR_RETURN(const Tensor* known, importer_->NeedKnown(call_, 0, "the count of trips"));
    if (known->dtype() != DType::kI64 || known->num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input 0 (the count of trips) is ", DTypeName(known->dtype()), " ",
                                                     ShapeString(known->shape()), "; it has to be one I64"));
    }
    return std::optional(known->elements<int64_t>()[0]);
  }

  // OK where a trip can be read although the data decide whether it is taken.
  absl::Status CheckOpen(const std::string& running) const {
    if (lists_.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "gives one element per trip while '", running,
        "' holds, which depends on the data: the shape of its result would, too. Carry a tensor of the most trips"));
  }

  // Carries on what a trip gave. The next trip, if it is taken, is given just that, so that what counts stays known.
  // What the loop gives is that only if `running` held, where it is not empty.
  absl::Status Take(const std::vector<std::string>& results, const std::string& running) {
    for (size_t i = 0; i < carried_.size(); ++i) {
      const std::string& next = results[i + 1];
      carried_[i] = next;
      if (running.empty()) {
        given_[i] = next;
        continue;
      }
      LS_RETURN_IF_ERROR(CheckSame(given_[i], next));
      given_[i] = Add(OpType::kWhere, {Reshape(running, {}), next, given_[i]});
    }
    for (size_t i = 0; i < lists_.size(); ++i) lists_[i].push_back(results[carried_.size() + 1 + i]);
    return status();
  }

  // Whether the next trip is taken: this one was, and its condition holds.
  absl::StatusOr<std::string> Goes(const std::string& running, bool certain, const std::string& condition) {
    if (certain) return condition;
    LS_ASSIGN_OR_RETURN(const std::optional<bool> known, importer_->KnownCondition(condition));
    if (known.has_value()) return *known ? running : condition;
    const std::string both = Add(OpType::kAnd, {Reshape(running, {}), Reshape(condition, {})});
    LS_RETURN_IF_ERROR(status());
    return both;
  }

  std::vector<std::string> carried_;             // into the next trip
  std::vector<std::string> given_;               // by the loop, if no more trip is taken
  std::vector<std::vector<std::string>> lists_;  // what each trip adds
};

// Scan: one trip per element of its inputs along an axis, with a state that is carried.
class OnnxImporter::Scan : private Trips {
 public:
  Scan(OnnxImporter* importer, const Call& call, int begin, int end) : Trips(importer, call, begin, end) {}

  absl::Status Run() {
    if (importer_->opset() < 9) {
      return absl::UnimplementedError(
          "a Scan of opset 8, which has a batch of its own. Export the model in opset 9 or later");
    }
    LS_ASSIGN_OR_RETURN(const RawAttributes raw, importer_->ReadAttributes(*call_.node));
    LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"num_scan_inputs", "scan_input_axes", "scan_input_directions",
                                            "scan_output_axes", "scan_output_directions"}));
    const int inputs = call_.node->input_size();
    const int64_t scanned = IntOf(raw, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > inputs) {
      return absl::InvalidArgumentError(absl::StrCat("scans ", scanned, " of its ", inputs, " inputs"));
    }
    const int states = inputs - static_cast<int>(scanned);
    const int lists = call_.node->output_size() - states;
    if (lists < 0) return absl::InvalidArgumentError("gives fewer values than it has states");
    LS_RETURN_IF_ERROR(CheckBody(inputs, call_.node->output_size()));
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ListOf(raw, "scan_input_axes", scanned, false));
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> reversed, ListOf(raw, "scan_input_directions", scanned, true));
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> to_axes, ListOf(raw, "scan_output_axes", lists, false));
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> to_reversed, ListOf(raw, "scan_output_directions", lists, true));
    for (size_t i = 0; i < axes.size(); ++i) {
      LS_RETURN_IF_ERROR(Cut(call_.node->input(states + static_cast<int>(i)), axes[i], reversed[i] != 0));
    }
    std::vector<std::string> state(call_.node->input().begin(), call_.node->input().begin() + states);
    std::vector<std::vector<std::string>> given(static_cast<size_t>(lists));
    const std::string running = Constant(Tensor::Of<bool>({}, {true}));
    for (size_t trip = 0; trip < elements_[0].size(); ++trip) {
      std::vector<std::string> takes = state;
      for (const auto& elements : elements_) takes.push_back(elements[trip]);
      LS_ASSIGN_OR_RETURN(const std::vector<std::string> results, Read(static_cast<int64_t>(trip), running, takes));
      for (int i = 0; i < states; ++i) {
        LS_RETURN_IF_ERROR(CheckSame(state[static_cast<size_t>(i)], results[static_cast<size_t>(i)]));
      }
      std::copy_n(results.begin(), states, state.begin());
      for (int i = 0; i < lists; ++i) given[static_cast<size_t>(i)].push_back(results[static_cast<size_t>(states + i)]);
    }
    Note(static_cast<int64_t>(elements_[0].size()), false);
    for (int i = 0; i < states; ++i) LS_RETURN_IF_ERROR(GiveOutput(i, state[static_cast<size_t>(i)]));
    for (int i = 0; i < lists; ++i) {
      std::vector<std::string>& parts = given[static_cast<size_t>(i)];
      if (to_reversed[static_cast<size_t>(i)] != 0) std::reverse(parts.begin(), parts.end());
      LS_ASSIGN_OR_RETURN(const std::string stacked, Stack(parts, to_axes[static_cast<size_t>(i)]));
      LS_RETURN_IF_ERROR(GiveOutput(states + i, stacked));
    }
    return status();
  }

 private:
  // A list attribute with one integer for each of `count` inputs or outputs; zeros where it is left out. `flags`: of 0
  // and 1 alone.
  static absl::StatusOr<std::vector<int64_t>> ListOf(const RawAttributes& raw, const std::string& name, int64_t count,
                                                     bool flags) {
    const auto found = raw.find(name);
    if (found == raw.end()) return std::vector<int64_t>(static_cast<size_t>(count));
    const auto* const list = std::get_if<std::vector<int64_t>>(&found->second);
    const auto is_flag = [](int64_t value) { return value == 0 || value == 1; };
    if (list != nullptr && list->size() == static_cast<size_t>(count) &&
        (!flags || std::all_of(list->begin(), list->end(), is_flag))) {
      return *list;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' has to be a list of ", count, flags ? " integers, 0 or 1" : " integers"));
  }

  // Cuts a scanned input into what each trip is given.
  absl::Status Cut(const std::string& input, int64_t axis, bool backwards) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(input));
    LS_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, static_cast<int64_t>(info.shape.size())));
    const int64_t length = info.shape[static_cast<size_t>(axis)];
    if (!elements_.empty() && length != static_cast<int64_t>(elements_[0].size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("scans ", elements_[0].size(), " elements of one input and ", length, " of another one"));
    }
    if (length > kMostTrips) {
      return absl::InvalidArgumentError(absl::StrCat("takes ", length, " trips; at most ", kMostTrips,
                                                     " are written out. Let the model compute more in a trip"));
    }
    Shape shape = info.shape;
    shape.erase(shape.begin() + axis);
    std::vector<std::string> parts = {input};
    if (length == 0) parts.clear();
    if (length > 1) {
      const std::vector<int64_t> sizes(static_cast<size_t>(length), 1);
      parts = AddMany(OpType::kSplit, {input}, {{"axis", axis}, {"split", sizes}}, length);
    }
    for (std::string& part : parts) part = Reshape(part, shape);
    if (backwards) std::reverse(parts.begin(), parts.end());
    elements_.push_back(std::move(parts));
    return status();
  }

  std::vector<std::vector<std::string>> elements_;  // by scanned input and trip
};

absl::Status OnnxImporter::ReadLoop(Call& call, int begin, int end) {
  return call.node->op_type() == "Loop" ? Loop(this, call, begin, end).Run() : Scan(this, call, begin, end).Run();
}

}  // namespace lockstep
