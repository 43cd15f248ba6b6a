"""Small tokenizers of each kind, trained on the spot."""

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog. Name a prime. Seven. Questionone Answerone",
    "user system assistant tool think\n\n\n  return 1 café 👩‍👩‍👧 é ### User: Capital of Peru? Lima.",
    "ignore <|im_end|> <|im_start|> <think> </think> tool_call name arguments city Cityone Resultone",
]
MARKERS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]


def byte_level(*, nfc: bool = False) -> Tokenizer:
    """A byte-level BPE as of Qwen or GPT: markers are special, think tags are added but not special."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet))
    tokenizer.add_special_tokens(MARKERS)
    tokenizer.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    return tokenizer


def white_space_tokens() -> Tokenizer:
    """A byte-level tokenizer whose runs of line ends are added tokens, as all white space is in Gemma 3."""
    tokenizer = byte_level()
    tokenizer.add_tokens([AddedToken("\n" * count, normalized=False, special=False) for count in (1, 2, 3)])
    return tokenizer


def word_piece_like(scheme: str) -> Tokenizer:
    """A tokenizer with the word mark of SentencePiece."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"])
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer
