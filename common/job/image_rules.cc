#include "common/job/image_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/job/extent.h"

namespace lockstep {

std::vector<ImageMistake> ImageMistakes(const job::DataFiles& files) {
  std::vector<ImageMistake> mistakes;
  const auto& size = files.image_size();
  if (size.size() == 1) mistakes.push_back({"image_size", "takes height and width: [224, 224]"});
  if (files.has_image_resize() && size.size() == 2 && files.image_resize() < std::max(size[0], size[1])) {
    mistakes.push_back({"image_resize", "is less than a side of image_size, which is taken out of it; raise it"});
  }
  if (files.has_image_resize() && size.empty()) mistakes.push_back({"image_resize", "needs image_size"});
  if (files.image_decode() == job::DataFiles::IMAGE_DECODE_STEP && size.empty()) {
    mistakes.push_back({"image_decode", "`step` needs image_size"});
  }
  return mistakes;
}

bool MixesSamples(const job::Data& data) { return data.augment().has_mixup() || data.augment().has_cutmix(); }

std::vector<ImageMistake> AugmentMistakes(const job::Data& data) {
  const auto& shares = data.augment().resized_crop();
  if (shares.empty()) return {};
  if (shares.size() != 2 || shares[0] > shares[1]) {
    return {{"resized_crop", "takes the least and the largest share of an image's area: [0.08, 1]"}};
  }
  if (data.train().image_decode() == job::DataFiles::IMAGE_DECODE_STEP) return {};
  return {
      {"resized_crop", "takes parts of the images in their files, for which data.train.image_decode has to be `step`"}};
}

std::vector<ImageMistake> MixingMistakes(const job::JobSpec& spec) {
  if (!MixesSamples(spec.data())) return {};
  const char* const key = spec.data().augment().has_mixup() ? "mixup" : "cutmix";
  std::vector<ImageMistake> mistakes;
  if (spec.model().loss() != "softmax_cross_entropy") {
    mistakes.push_back({key, absl::StrCat("mixes labels of classes, for softmax_cross_entropy, and model.loss is ",
                                          spec.model().loss(), "; remove the key")});
  }
  if (PassBatch(spec) < 2) {
    mistakes.push_back(
        {key,
         "mixes the samples of a pass, and here a pass has one (global_batch_size / logical_shards, or micro_batch); "
         "let it have two or more, or remove the key"});
  }
  return mistakes;
}

}  // namespace lockstep
