#include "common/graph/ops/einsum_equation.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

constexpr absl::string_view kEllipsis = "...";

absl::Status Malformed(absl::string_view equation, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("equation '", equation, "' ", reason));
}

// One term as symbols: letters, and for an ellipsis of n dimensions the numbers -n to -1, so that the last dimensions
// of two ellipses are the same.
absl::StatusOr<std::vector<int>> Symbols(absl::string_view equation, absl::string_view term, int ellipsis_rank) {
  std::vector<int> symbols;
  bool seen = false;
  while (!term.empty()) {
    if (absl::StartsWith(term, kEllipsis) && !seen) {
      seen = true;
      for (int i = -ellipsis_rank; i < 0; ++i) symbols.push_back(i);
      term.remove_prefix(kEllipsis.size());
    } else if (absl::ascii_isalpha(static_cast<unsigned char>(term[0]))) {
      symbols.push_back(term[0]);
      term.remove_prefix(1);
    } else {
      return Malformed(equation, absl::StrCat("has '", term.substr(0, 1), "' where a letter or one '...' belongs"));
    }
  }
  return symbols;
}

// How many dimensions the ellipsis of a term stands for; 0 without one, negative when the term has too many letters.
int EllipsisRank(absl::string_view term, const Shape& shape) {
  const bool has = term.find(kEllipsis) != absl::string_view::npos;
  const int letters = static_cast<int>(term.size() - (has ? kEllipsis.size() : 0));
  const int rest = static_cast<int>(shape.size()) - letters;
  return has || rest == 0 ? rest : -1;
}

std::vector<int> ImplicitOutput(const std::vector<std::vector<int>>& terms) {
  std::map<int, int> counts;
  for (const std::vector<int>& term : terms) {
    for (const int symbol : term) ++counts[symbol];
  }
  std::vector<int> output;
  for (const auto& [symbol, count] : counts) {
    if (symbol < 0 || count == 1) output.push_back(symbol);
  }
  return output;
}

}  // namespace

absl::StatusOr<EinsumTerms> ParseEinsum(absl::string_view equation, absl::Span<const Shape> shapes) {
  const std::string compact = absl::StrReplaceAll(equation, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(compact, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2) return Malformed(equation, "has more than one '->'");
  if (terms.size() != shapes.size()) {
    return Malformed(equation, absl::StrCat("has ", terms.size(), " terms for ", shapes.size(), " operands"));
  }
  int longest = 0;
  std::vector<std::vector<int>> symbols;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int rank = EllipsisRank(terms[i], shapes[i]);
    if (rank < 0) {
      return Malformed(equation,
                       absl::StrCat("has term '", terms[i], "' for an operand of shape ", ShapeString(shapes[i])));
    }
    longest = std::max(longest, rank);
    absl::StatusOr<std::vector<int>> term = Symbols(equation, terms[i], rank);
    if (!term.ok()) return term.status();
    symbols.push_back(*std::move(term));
  }
  absl::StatusOr<std::vector<int>> output = ImplicitOutput(symbols);
  if (sides.size() == 2) output = Symbols(equation, sides[1], longest);
  if (!output.ok()) return output.status();

  EinsumTerms result;
  result.output_rank = output->size();
  std::map<int, size_t> labels;
  for (const int symbol : *output) {
    if (!labels.emplace(symbol, labels.size()).second)
      return Malformed(equation, "names a dimension of the result twice");
  }
  for (const std::vector<int>& term : symbols) {
    std::vector<size_t> dims;
    for (const int symbol : term) dims.push_back(labels.emplace(symbol, labels.size()).first->second);
    result.operands.push_back(std::move(dims));
  }
  result.extents.assign(labels.size(), -1);
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      int64_t& extent = result.extents[result.operands[i][d]];
      if (extent < 0 || extent == 1) extent = shapes[i][d];
      if (shapes[i][d] == 1 || shapes[i][d] == extent) continue;
      return Malformed(equation, absl::StrCat("gives one letter to dimensions of ", extent, " and ", shapes[i][d]));
    }
  }
  if (std::count(result.extents.begin(), result.extents.end(), -1) > 0) {
    return Malformed(equation, "has a dimension in the result that no operand has");
  }
  return result;
}

}  // namespace lockstep
