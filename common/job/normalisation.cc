#include "common/job/normalisation.h"

namespace lockstep {

Normalisation MakeNormalisation(const job::Data& data) {
  Normalisation normalisation;
  if (!data.has_normalize()) return normalisation;
  normalisation.scale = 1.0 / data.normalize().divide_by();
  normalisation.mean.assign(data.normalize().mean().begin(), data.normalize().mean().end());
  normalisation.std.assign(data.normalize().std().begin(), data.normalize().std().end());
  return normalisation;
}

}  // namespace lockstep
