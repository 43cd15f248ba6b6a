from __future__ import annotations

import pytest

from turnmill.filters.common_words import COMMON_WORDS
from turnmill.filters.language import KNOWN, SPOKEN_IN, language_of

TEXTS = {
    "en": (
        "The train to the north leaves at noon from the second platform, and it will be late because of the "
        "snow that fell on the tracks last night. You can take the bus if you want to be there on time."
    ),
    "de": (
        "Der Zug nach Norden fährt um zwölf Uhr vom zweiten Gleis ab, und er wird sich wegen des Schnees "
        "verspäten, der in der Nacht auf die Schienen gefallen ist. Du kannst auch den Bus nehmen."
    ),
    "fr": (
        "Le train pour le nord part à midi du deuxième quai, et il sera en retard à cause de la neige qui est "
        "tombée sur les voies cette nuit. Vous pouvez prendre le bus si vous êtes pressé."
    ),
    "es": (
        "El tren hacia el norte sale a mediodía de la segunda vía, y llegará tarde por la nieve que cayó "
        "sobre las vías esta noche. Puedes tomar el autobús si no quieres esperar en la estación."
    ),
    "it": (
        "Il treno per il nord parte a mezzogiorno dal secondo binario e sarà in ritardo per la neve che è "
        "caduta sui binari questa notte. Puoi prendere l'autobus se non vuoi aspettare alla stazione."
    ),
    "pt": (
        "O trem para o norte sai ao meio-dia da segunda plataforma e vai atrasar por causa da neve que caiu "
        "sobre os trilhos esta noite. Você pode ir de ônibus se não quiser esperar na estação."
    ),
    "nl": (
        "De trein naar het noorden vertrekt om twaalf uur van het tweede spoor en zal te laat zijn door de "
        "sneeuw die in de nacht op het spoor is gevallen. Je kan ook met de bus gaan."
    ),
    "pl": (
        "Pociąg na północ odjeżdża w południe z drugiego peronu i będzie spóźniony przez śnieg, który spadł "
        "na tory w nocy. Może pan pojechać autobusem, jeśli nie chce czekać na dworcu, ale to jest drożej."
    ),
    "ru": (
        "Поезд на север уходит в полдень со второго пути, и он опоздает из-за снега, который выпал ночью. Вы "
        "можете поехать на автобусе, если не хотите ждать на вокзале, но это будет дороже."
    ),
    "uk": (
        "Потяг на північ вирушає опівдні з другої колії, і він запізниться через сніг, який випав уночі. Ви "
        "можете поїхати автобусом, якщо не хочете чекати на вокзалі, але це буде дорожче."
    ),
    "zh": "开往北方的火车中午从第二站台出发，因为昨晚铁轨上下了雪，所以会晚点。如果你想准时到达，可以坐公共汽车。",
    "ja": (
        "北へ向かう列車は正午に二番線から出発しますが、昨夜線路に雪が"
        "降ったため遅れます。急ぐならバスに乗ることもできます。"
    ),
    "ko": "북쪽으로 가는 기차는 정오에 이번 승강장에서 출발하지만 어젯밤에 내린 눈 때문에 늦어질 것입니다.",
    "ar": (
        "القطار إلى الشمال يغادر عند الظهر من الرصيف الثاني وهو متأخر بسبب الثلج الذي سقط على السكة في الليل. "
        "يمكن أن تذهب في الحافلة إذا كان ذلك أسرع من القطار."
    ),
    "el": "Το τρένο για τον βορρά φεύγει το μεσημέρι από τη δεύτερη αποβάθρα και θα αργήσει.",
    "hi": (
        "उत्तर की ओर जाने वाली गाड़ी दोपहर को दूसरे प्लेटफॉर्म से चलती है और रात को गिरी बर्फ के कारण यह देर "
        "से आएगी। आप बस से भी जा सकते हैं यदि आप स्टेशन पर नहीं रुकना चाहते हैं।"
    ),
}

UNDECIDED = [
    "",
    "OK.",
    "Yes, it is.",
    "42 + 7 = 49; 3.14",
    "```python\nfor the in of: to and a\n```",
    "x = np.array([1, 2, 3]); y = torch.tensor(x); model.fit(x, y); print(model.predict(x), len(y))",
    TEXTS["en"][:110] + TEXTS["zh"],
    "Paris London Tokyo Berlin Madrid Rome Vienna Prague Warsaw Oslo Lisbon Athens Dublin Helsinki Stockholm Bern Kyiv "
    "Minsk Riga Tallinn Vilnius Sofia",
    "https://example.org/the/of/and/to/in/a/is/that/for",
    "Schau",
]


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_is_told(language):
    assert language_of(TEXTS[language]) == language


def test_every_language_of_a_shared_script_has_its_words():
    shared = {name for names in SPOKEN_IN.values() for name in names}
    assert shared == set(COMMON_WORDS)
    assert set(TEXTS) < set(KNOWN)


@pytest.mark.parametrize("text", UNDECIDED)
def test_what_is_short_or_mixed_is_undecided(text):
    assert language_of(text) is None


@pytest.mark.parametrize("language", TEXTS)
def test_other_languages_leave(refused, language):
    fault = refused("language", TEXTS[language], keep=("en", "zh"))
    assert (fault.code if fault else None) == (None if language in ("en", "zh") else "language")


@pytest.mark.parametrize("text", UNDECIDED[1:])
def test_undecided_rows_stay(refused, text):
    assert refused("language", text, keep=("ko",)) is None


def test_without_a_choice_every_row_stays(refused):
    assert refused("language", TEXTS["fr"]) is None


def test_code_of_another_tongue_is_not_looked_at(refused):
    assert refused("language", f"{TEXTS['de']}\n```\n{TEXTS['en'] * 5}\n```", keep=("de",)) is None
