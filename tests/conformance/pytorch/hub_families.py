"""Small models of transformers and timm, each with its data and learning rate.

Learning rates are such that PyTorch's own float32 stays with its float64, and losses still move.
"""
from typing import NamedTuple

import timm
import torch
import transformers
from torch import nn

from models import next_tokens

CLASSES = 5
VOCABULARY, LENGTH = 256, 16


class Case(NamedTuple):
    make: object   # gives a new model
    inputs: tuple  # tensors, batches first
    labels: torch.Tensor
    rate: float


class Scores(nn.Module):
    """A model of transformers that takes tensors by their place and gives scores alone."""

    def __init__(self, model, names=(None,)):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, first, second=None, third=None):
        if self.names[0] is None:
            return self.model(first).logits
        given = zip(self.names, (first, second, third))
        return self.model(**{name: value for name, value in given if value is not None}).logits


def draw(seed=1):
    return torch.Generator().manual_seed(seed)


def noise(*shape):
    return torch.randn(*shape, generator=draw(2))


def tokens(batch=16):
    return torch.randint(2, VOCABULARY, (batch, LENGTH), generator=draw(3))


def classes(batch):
    return torch.randint(0, CLASSES, (batch,), generator=draw(4))


def masked_tokens():
    """Tokens, the mask of those that count, and segments."""
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (16, 1), generator=draw(5))
    places = torch.arange(LENGTH)[None]
    return tokens(), (places < lengths).long(), (places >= 4).long().expand(16, -1).contiguous()


# Transformers.

SHORT = dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
             max_position_embeddings=64)
ENCODER = dict(SHORT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.0,
               num_labels=CLASSES)
DECODER = dict(SHORT, num_key_value_heads=2, attention_dropout=0.0, use_cache=False, pad_token_id=0, bos_token_id=1,
               eos_token_id=1)
SEQUENCES = dict(vocab_size=VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                 decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, dropout=0.0,
                 attention_dropout=0.0, activation_dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=1)


CONFIGS = {"Gemma3": "Gemma3Text"}  # where it is not called as the model


def of_transformers(family, task, settings, names=(None,)):
    config = getattr(transformers, f"{CONFIGS.get(family, family)}Config")
    model = getattr(transformers, f"{family}{task}")
    return lambda: Scores(model(config(**settings)), names)


def classifier(family, rate=0.05, **settings):
    make = of_transformers(family, "ForSequenceClassification", {**ENCODER, **settings})
    return Case(make, (tokens(),), classes(16), rate)


def language_model(family, rate=0.05, task="ForCausalLM", **settings):
    make = of_transformers(family, task, {**DECODER, **settings})
    return Case(make, (tokens(),), next_tokens((tokens(),)), rate)


def translator(family, rate=0.05, **settings):
    make = of_transformers(family, "ForConditionalGeneration", settings, ("input_ids", "decoder_input_ids"))
    inputs = (tokens(), tokens().flip(1).contiguous())
    return Case(make, inputs, next_tokens(inputs), rate)


def of_data(family, task, inputs, rate=0.05, **settings):
    make = of_transformers(family, task, dict(settings, num_labels=CLASSES))
    return Case(make, (inputs,), classes(len(inputs)), rate)


def bert_with_masks():
    names = ("input_ids", "attention_mask", "token_type_ids")
    make = of_transformers("Bert", "ForSequenceClassification", ENCODER, names)
    return Case(make, masked_tokens(), classes(16), 0.05)


SWIN = dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
            drop_path_rate=0.0)
T5 = dict(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
          use_cache=False, decoder_start_token_id=0)

TRANSFORMERS = {
    "bert": lambda: classifier("Bert"),
    "bert_with_masks": bert_with_masks,
    "distilbert": lambda: classifier("DistilBert", dim=64, n_layers=2, n_heads=4, hidden_dim=128, dropout=0.0,
                                     attention_dropout=0.0, seq_classif_dropout=0.0),
    "roberta": lambda: classifier("Roberta", pad_token_id=1),
    "albert": lambda: classifier("Albert", embedding_size=32, classifier_dropout_prob=0.0),
    "electra": lambda: classifier("Electra", embedding_size=32),
    "deberta_v2": lambda: classifier("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"],
                                     position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
                                     pooler_dropout=0.0, pooler_hidden_size=64, cls_dropout=0.0),
    "gpt2": lambda: language_model("GPT2", task="LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=64,
                                   resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "llama": lambda: language_model("Llama"),
    "mistral": lambda: language_model("Mistral", sliding_window=8),
    "qwen2": lambda: language_model("Qwen2"),
    "qwen3": lambda: language_model("Qwen3", head_dim=16),
    "gemma": lambda: language_model("Gemma", head_dim=16),
    "gemma2": lambda: language_model("Gemma2", head_dim=16, sliding_window=8),
    "gemma3": lambda: language_model("Gemma3", head_dim=16, sliding_window=8),
    "phi3": lambda: language_model("Phi3", resid_pdrop=0.0, embd_pdrop=0.0),
    "mamba": lambda: language_model("Mamba", state_size=8, use_mambapy=False),
    "t5": lambda: translator("T5", 0.002, **T5),
    "bart": lambda: translator("Bart", **SEQUENCES, max_position_embeddings=64, use_cache=False),
    "vit": lambda: of_data("ViT", "ForImageClassification", noise(16, 3, 32, 32), hidden_size=64, num_hidden_layers=2,
                           num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8,
                           hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    "swin": lambda: of_data("Swin", "ForImageClassification", noise(16, 3, 32, 32), **SWIN),
    "convnext": lambda: of_data("ConvNext", "ForImageClassification", noise(16, 3, 64, 64),
                                hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 2, 1], image_size=64, drop_path_rate=0.0,
                                layer_scale_init_value=0.1),
    "wav2vec2": lambda: of_data("Wav2Vec2", "ForSequenceClassification", noise(16, 800), vocab_size=32, hidden_size=64,
                                num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                                num_feat_extract_layers=3, num_conv_pos_embeddings=16,
                                num_conv_pos_embedding_groups=4, hidden_dropout=0.0, attention_dropout=0.0,
                                feat_proj_dropout=0.0, activation_dropout=0.0, layerdrop=0.0, final_dropout=0.0,
                                apply_spec_augment=False, classifier_proj_size=32),
    "whisper": lambda: of_data("Whisper", "ForAudioClassification", noise(16, 16, 64), **SEQUENCES, num_mel_bins=16,
                               max_source_positions=32, classifier_proj_size=32, decoder_start_token_id=1),
}


# timm. Not here: MobileNetV4, MobileOne and Inception-v4, whose float32 in PyTorch leaves float64 at every rate tried.

VIT = dict(img_size=32, patch_size=4, embed_dim=64, depth=2, num_heads=4)
TIMM_SWIN = dict(img_size=32, patch_size=2, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 4),
                 drop_path_rate=0.0)
THIN = dict(channels=(16, 32, 64, 128), zero_init_last=False)


def of_timm(name, side=32, batch=16, rate=0.01, **settings):
    """`name` is a model of timm, or one of its classes."""
    def make():
        if name[0].isupper():
            return getattr(timm.models, name)(num_classes=CLASSES, **settings)
        return timm.create_model(name, pretrained=False, num_classes=CLASSES, drop_rate=0.0, **settings)

    return lambda: Case(make, (noise(batch, 3, side, side),), classes(batch), rate)


TIMM = {
    "timm_vit": of_timm("vit_tiny_patch16_224", **VIT),
    "timm_deit": of_timm("deit_tiny_distilled_patch16_224", **VIT),
    "timm_eva02": of_timm("eva02_tiny_patch14_224", **VIT),
    "timm_beit": of_timm("beit_base_patch16_224", **VIT, init_values=0.1),
    "timm_cait": of_timm("cait_xxs24_224", **VIT, init_values=0.1),
    "timm_xcit": of_timm("xcit_nano_12_p16_224", 64, embed_dim=64, depth=2, num_heads=4),
    "timm_swin": of_timm("swin_tiny_patch4_window7_224", **TIMM_SWIN),
    "timm_swinv2": of_timm("swinv2_tiny_window8_256", **TIMM_SWIN),
    "timm_twins": of_timm("twins_pcpvt_small", 64, img_size=64, depths=(1, 1, 1, 1), embed_dims=(16, 32, 64, 64),
                          num_heads=(1, 2, 4, 4)),
    "timm_pvt": of_timm("pvt_v2_b0", 64, depths=(1, 1, 1, 1), embed_dims=(16, 32, 64, 64),
                        num_heads=(1, 2, 4, 4)),
    "timm_mixer": of_timm("MlpMixer", img_size=32, patch_size=4, embed_dim=64, num_blocks=2),
    "timm_poolformer": of_timm("MetaFormer", 64, depths=(1, 1, 1, 1), dims=(16, 32, 64, 64)),
    "timm_levit": of_timm("Levit", 64, img_size=64, embed_dim=(32, 48, 64), key_dim=16, depth=(1, 2, 1),
                          num_heads=(2, 3, 4)),
    "timm_coatnet": of_timm("test_coatnet", 64, img_size=64),
    "timm_maxvit": of_timm("test_maxvit", 64, img_size=64),
    "timm_mobilevit": of_timm("mobilevit_xxs", 64),
    "timm_mobilevitv2": of_timm("mobilevitv2_050", 64, rate=0.01),
    "timm_edgenext": of_timm("edgenext_xx_small", 64, ls_init_value=0.1),
    "timm_efficientvit_mit": of_timm("efficientvit_b0", 64, rate=1e-4),
    "timm_efficientvit_msra": of_timm("efficientvit_m0", 64, rate=1e-4, img_size=64),
    "timm_fastvit": of_timm("fastvit_t8", 64, layers=(1, 1, 1, 1), embed_dims=(16, 32, 64, 128),
                            layer_scale_init_value=0.1),
    "timm_convnext": of_timm("convnext_atto", 64, depths=(1, 1, 2, 1), dims=(16, 32, 64, 64), ls_init_value=0.1),
    "timm_inception_next": of_timm("inception_next_atto", 64, rate=0.001, ls_init_value=0.1),
    "timm_mambaout": of_timm("test_mambaout", 64),
    "timm_resnet": of_timm("resnet18", 64, rate=1e-5, **THIN),
    "timm_resnet_d": of_timm("resnet50d", 64, rate=1e-6, layers=[1, 1, 1, 1], **THIN),
    "timm_resnext": of_timm("resnext50_32x4d", 64, rate=1e-5, layers=[1, 1, 1, 1], **THIN),
    "timm_seresnet": of_timm("seresnet18", 64, rate=1e-5, **THIN),
    "timm_res2net": of_timm("res2net50_26w_4s", 64, rate=1e-5, layers=[1, 1, 1, 1], **THIN),
    "timm_densenet": of_timm("densenet121", 64, rate=1e-4, block_config=(2, 2, 2, 2)),
    "timm_dpn": of_timm("dpn48b", 64, rate=1e-6),
    "timm_regnet": of_timm("regnety_002"),
    "timm_repvgg": of_timm("repvgg_a0", 64, rate=1e-5),
    "timm_vgg": of_timm("vgg11_bn", 64, rate=1e-4, mlp_ratio=0.02),
    "timm_nfnet": of_timm("test_nfnet", 64),
    "timm_nfnet_l0": of_timm("eca_nfnet_l0"),
    "timm_efficientnet": of_timm("test_efficientnet", 64),
    "timm_efficientnet_b0": of_timm("efficientnet_b0", 64, rate=1e-6),
    "timm_mobilenetv3": of_timm("mobilenetv3_small_050", 64, rate=0.001),
    "timm_ghostnet": of_timm("ghostnet_050", 64, rate=1e-4),
    "timm_hrnet": of_timm("hrnet_w18_small", 64, rate=1e-5),
    "timm_xception": of_timm("legacy_xception", 64, rate=1e-5),
}

CASES = {**TRANSFORMERS, **TIMM}
