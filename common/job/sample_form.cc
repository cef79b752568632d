#include "common/job/sample_form.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Order = std::vector<int64_t>;

Shape Permuted(const Shape& shape, const Order& order) {
  Shape result;
  for (const int64_t from : order) result.push_back(shape[static_cast<size_t>(from)]);
  return result;
}

// The shape that `order` makes into `delivered`.
Shape Unpermuted(const Shape& delivered, const Order& order) {
  Shape shape(delivered.size());
  for (size_t i = 0; i < order.size(); ++i) shape[static_cast<size_t>(order[i])] = delivered[i];
  return shape;
}

// The order of dimensions that makes `stored` into `wanted`. Where several do, channels that move to the front come
// first, then channels that move to the back.
std::optional<Order> FindOrder(const Shape& stored, const Shape& wanted) {
  constexpr size_t kMostDimensions = 6;
  const size_t rank = stored.size();
  if (rank < 2 || rank > kMostDimensions) return std::nullopt;
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  const auto fits = [&](const Order& candidate) { return SameSample(Permuted(stored, candidate), wanted); };
  Order to_front = order, to_back = order;
  std::rotate(to_front.begin(), to_front.end() - 1, to_front.end());
  std::rotate(to_back.begin(), to_back.begin() + 1, to_back.end());
  if (fits(to_front)) return to_front;
  if (fits(to_back)) return to_back;
  do {
    if (fits(order)) return order;
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

// What the job has to say for `stored` to be what the model takes.
std::string Remedy(const Shape& stored, const Shape& wanted) {
  if (const std::optional<Order> order = FindOrder(stored, wanted); order.has_value()) {
    return absl::StrCat("The dimensions come in another order: set data.transpose: ", ShapeString(*order));
  }
  const auto found = CheckedNumElements(stored);
  const auto expected = CheckedNumElements(wanted);
  if (!found.ok() || !expected.ok() || *found != *expected) {
    return "The numbers of elements differ: give the data that the model was made for, or another model";
  }
  const std::string in_order = "If the elements come in the order of the model's shape, set data.reshape: [-1]";
  if (wanted.size() != 3) return in_order;
  return absl::StrCat(in_order, "; if they are images with the channels last, set data.reshape: ",
                      ShapeString({wanted[1], wanted[2], wanted[0]}), " and data.transpose: [2, 0, 1]");
}

}  // namespace

SampleForm MakeSampleForm(const job::JobSpec& spec) {
  SampleForm form;
  const auto& reshape = spec.data().reshape();
  if (reshape.size() == 1 && reshape.Get(0) == -1) {
    form.in_order = true;
  } else {
    form.reshape.assign(reshape.begin(), reshape.end());
  }
  form.transpose.assign(spec.data().transpose().begin(), spec.data().transpose().end());
  const job::Model& model = spec.model();
  form.in_order = form.in_order || (model.has_builtin() && model.builtin().name() == job::BuiltinModel::NAME_MLP);
  return form;
}

bool SameSample(const Shape& a, const Shape& b) {
  const auto without_ones = [](Shape shape) {
    shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
    return shape;
  };
  return without_ones(a) == without_ones(b);
}

SampleView ViewSample(const SampleForm& form, const Shape& stored) {
  SampleView view{.stored = stored, .order = {}, .delivered = stored};
  const auto elements = CheckedNumElements(form.reshape);
  if (!form.reshape.empty() && elements.ok() && *elements == NumElements(stored)) view.stored = form.reshape;
  if (!form.transpose.empty() && form.transpose.size() == view.stored.size()) view.order = form.transpose;
  view.delivered = view.order.empty() ? view.stored : Permuted(view.stored, view.order);
  return view;
}

absl::StatusOr<SampleView> ViewSampleAs(const SampleForm& form, const Shape& stored, const Shape& wanted) {
  SampleView view = ViewSample(form, stored);
  if (form.in_order && NumElements(stored) == NumElements(wanted)) {
    if (view.order.empty() && !form.transpose.empty() && form.transpose.size() == wanted.size()) {
      view.order = form.transpose;
      view.stored = Unpermuted(wanted, view.order);
    }
    view.delivered = wanted;
    return view;
  }
  if (SameSample(view.delivered, wanted)) {
    view.delivered = wanted;
    return view;
  }
  const std::string now = view.delivered == stored ? "" : absl::StrCat(", here taken as ", ShapeString(view.delivered));
  return absl::InvalidArgumentError(absl::StrCat(ShapeString(stored), now, "; the model takes ", ShapeString(wanted),
                                                 ". ", Remedy(view.stored, wanted)));
}

absl::Status CheckChannelsFirst(const Shape& delivered) {
  const auto few = [](int64_t channels) { return channels == 1 || channels == 3; };
  if (delivered.size() != 3 || !few(delivered[2]) || few(delivered[0])) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ShapeString(delivered),
                   "; the model takes [channels, height, width]. If the channels come last, set "
                   "data.transpose: [2, 0, 1]; if these are ",
                   delivered[0], " channels, set model.builtin.input: ", ShapeString(delivered)));
}

}  // namespace lockstep
