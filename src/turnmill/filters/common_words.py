"""The commonest words of languages that share a script, and letters that only one of them has."""

from __future__ import annotations

_LISTS = {
    "ar": (
        "في من على أن إلى التي الذي هذا هذه ما لا كان عن مع هو هي أو كل قد بين يمكن ذلك بعد غير حيث ثم لم عند إذا وهو"
    ),
    "bg": (
        "на и да се за от че не си ще са по като във това това който които със но или му към до само може след "
        "при при още"
    ),
    "cs": (
        "a se na je že s v to do i jako ale pro by jsou z o které který nebo si podle jsem jeho tak také být bylo má"
    ),
    "da": (
        "og i at det en er til på som de med han af for ikke der var mig sig men et har om vi min havde fra du kan ved"
    ),
    "de": (
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus "
        "er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber "
        "vor zur bis mehr durch man sein wurde kann ich du wir können"
    ),
    "en": (
        "the of and to in a is that for it as was with be by on not he his but at are this have from or had an "
        "they which one you were all her she there would their we him been has when who will no more if out so up "
        "what its about into than them can only other your some could these two may then do any my now such like "
        "our how over also"
    ),
    "es": (
        "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si "
        "sin sobre este ya entre cuando todo esta ser son también fue había muy años hasta desde está mi porque "
        "qué sólo yo hay puede"
    ),
    "fa": ("و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شود شد او ما باید هر اگر های است دارد کند"),
    "fi": (
        "ja on ei että se hän oli mutta kun joka en ovat olla niin myös kuin tai sen mukaan voi jos ole mitä minä sekä"
    ),
    "fr": (
        "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec "
        "son aux d'un cette ou ses mais comme on nous vous leur elle être fait peut ont été si tout je aussi même "
        "sans entre c'est"
    ),
    "hi": "के का में की है और से को पर यह कि एक ने हैं नहीं तो ही भी या हो कर लिए इस था जो वह साथ अपने किया जा",
    "hu": ("a az és hogy nem is egy ez de van meg azt csak volt mint már ha vagy még el lehet ki mert minden olyan"),
    "id": (
        "yang dan di dari untuk dengan ini itu pada adalah dalam tidak akan ke atau juga dapat bisa oleh saya "
        "mereka ada sebagai anda kita karena lebih telah"
    ),
    "it": (
        "di e che il la in un a per è una sono del non con da si le dei come nel i alla più o anche della al ha "
        "se ma lo gli questo nella essere delle può ci su dal ed sua"
    ),
    "mr": "आणि आहे या च्या मध्ये तो ती ते हे ही नाही आहेत होते होती साठी पण एक त्या असे की मी करून कर",
    "nl": (
        "de van het een en in is dat op te zijn met voor niet die aan er om ook als maar dan bij uit nog naar "
        "door over ze heeft of je deze kan worden wordt hij wat meer"
    ),
    "no": (
        "og i det er på en som av for at til med de å har ikke den om et var seg fra men vi kan jeg eller så hun "
        "bare etter"
    ),
    "pl": (
        "w i na z się nie do to że jest o jak po co ale za tak od dla przez czy są oraz tego może był już być "
        "jego które"
    ),
    "pt": (
        "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à "
        "seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre você são"
    ),
    "ro": (
        "și de în la a cu pe o nu să care este din mai un sunt pentru ca că sau fi dar prin după ce acest această poate"
    ),
    "ru": (
        "и в не на что с он как я это по но из у за от так же для вы бы его или мы она они быть если только может "
        "который к то был было также при"
    ),
    "sv": (
        "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan man "
        "när eller"
    ),
    "tr": (
        "ve bir bu da de için ile olarak çok daha olan gibi en kadar ne ama değil var o ya veya sonra her ki olduğu"
    ),
    "uk": (
        "і в не на що з та у як до це за він але від для а по був є або ви так ми вони бути його може також якщо який"
    ),
    "ur": "کے کی میں ہے اور سے کو کا پر نے یہ ایک کہ ہیں بھی نہیں تو کر لیے ہو اس تھا جو وہ",
    "vi": (
        "của và là các có được trong cho một không với những để này người đã từ khi đến như về bạn tôi thể cũng hay ra"
    ),
}

COMMON_WORDS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _LISTS.items()}
"""By two-letter code."""

MARKS = {"uk": "іїєґ", "ru": "ыэё", "ur": "ٹڈڑےں", "tr": "ığ", "ro": "șț", "cs": "řůě", "pl": "łż"}
"""Letters that none of the other languages of the script has."""
