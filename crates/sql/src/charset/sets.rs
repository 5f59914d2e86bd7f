//! The character sets of MySQL 9.7.4-2, asked of the server. Generated, not edited:
//! `python3 crates/sql/gen/charsets.py SOCKET > FILE`.

use super::{PLAIN, Set, Shape, classes, upper};

#[rustfmt::skip]
pub(super) static SETS: [Set; 37] = [
    Set { name: "armscii8", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s.................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.."),
        upper: &upper(161, "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔ\
             քՕօՖֆ’'"), ..PLAIN },
    Set { name: "ascii", shape: Shape::Single,
        classes: &classes(&[],
            b"................................................................................................................................"), ..PLAIN },
    Set { name: "big5", shape: Shape::Big5,
        classes: &classes(&[],
            b".................................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww......"), ..PLAIN },
    Set { name: "binary", shape: Shape::Single,
        classes: &classes(&[],
            b"................................................................................................................................"),
        upper: &upper(256, ""), ..PLAIN },
    Set { name: "cp1250", shape: Shape::Single,
        classes: &classes(&[],
            b"cc.c....c.w.wwwwc.......c.w.wwwws..w.w.w..w....w...w.....ww.w.wwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."),
        upper: &upper(128, "€\0‚\0„…†‡\0‰Š‹ŚŤŽŹ\0‘’“”•–—\0™š›śťžź\u{a0}\u{2c7}˘Ł¤Ą¦§¨©Ş«¬\u{ad}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľżŔÁÂ\
             ĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙"), ..PLAIN },
    Set { name: "cp1251", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"ww.w......w.wwwww.........w.wwww.www.w..w.w....w..www...w.w.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"),
        upper: &upper(128, "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\0™љ›њќћџ\u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВГДЕЖЗИЙКЛМ\
             НОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя"), ..PLAIN },
    Set { name: "cp1256", shape: Shape::Single,
        classes: &classes(&[],
            b".w.w........www.w...........w....................................wwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwww..."),
        upper: &upper(128, "€\u{67e}‚ƒ„…†‡\u{2c6}‰\0‹Œ\u{686}\u{698}\0\u{6af}‘’“”•–—\0™\0›œ\u{200c}\u{200d}\0\u{a0}،\
             ¢£¤¥¦§¨©\0«¬\u{ad}®¯°±²³´µ¶·¸¹\u{61b}»¼½¾\u{61f}\0\u{621}\u{622}\u{623}\u{624}\u{625}\
             \u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\
             \u{632}\u{633}\u{634}\u{635}\u{636}×\u{637}\u{638}\u{639}\u{63a}\u{640}\u{641}\u{642}\
             \u{643}à\u{644}â\u{645}\u{646}\u{647}\u{648}çèéêë\u{649}\u{64a}îï\u{64b}\u{64c}\u{64d}\
             \u{64e}ô\u{64f}\u{650}÷\u{651}ù\u{652}ûü\u{200e}\u{200f}\0"), ..PLAIN },
    Set { name: "cp1257", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"........................................w.w....w........w.w....wwwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."),
        upper: &upper(128, "€\0‚\0„…†‡\0‰\0‹\0¨\u{2c7}¸\0‘’“”•–—\0™\0›\0¯˛\0\u{a0}\0¢£¤\0¦§Ø©Ŗ«¬\u{ad}®Æ°±²³´µ¶·ø¹ŗ»\
             ¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙"), ..PLAIN },
    Set { name: "cp850", shape: Shape::Single,
        classes: &classes(&[],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwww.w..wwwwww...............www..............ww........wwwwwwwww.....w.wwwwww.wwwwwww.................c"),
        upper: &upper(128, "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎ\
             Ï┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}"), ..PLAIN },
    Set { name: "cp852", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwww.www.......wwww....ww.......ww........wwwwwwwww....ww.wwwwwwwwwwwwwww............www.s"),
        upper: &upper(128, "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎ\
             ě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛\u{2c7}˘§÷¸°¨˙űŘř■\u{a0}"), ..PLAIN },
    Set { name: "cp866", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww................................................wwwwwwwwwwwwwwwwwwwwwwww.......s"),
        upper: &upper(128, "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫\
             ╪┘┌█▄▌▐▀рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√\u{207f}²■\u{a0}"), ..PLAIN },
    Set { name: "cp932", shape: Shape::Sjis,
        classes: &classes(&[],
            b".wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww................................................................wwwwwwwwwwwwwwwwwwwwwwwwwwwww..."), ..PLAIN },
    Set { name: "dec8", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s...............................wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwww"),
        upper: &upper(164, "\0¥\0§¤©ª«\0\0\0\0°±²³\0µ¶·\0¹º»¼½\0¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\0ÑÒÓÔÕÖŒØÙÚÛÜŸ\0ßàáâãäåæçèéêëìíîï\
             \0ñòóôõöœøùúûüÿ\0\0"), ..PLAIN },
    Set { name: "eucjpms", shape: Shape::Ujis,
        classes: &classes(&[],
            b"..............ww.................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "euckr", shape: Shape::Euckr,
        classes: &classes(&[],
            b".wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "gb18030", shape: Shape::Gb18030,
        classes: &classes(&[],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "gb2312", shape: Shape::Gb2312,
        classes: &classes(&[],
            b".................................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "gbk", shape: Shape::Gbk,
        classes: &classes(&[],
            b".wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "geostd8", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s...............................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.........................."),
        upper: &upper(128, "€\0‚\0„…†‡\0‰\0‹\0\0\0\0\0‘’“”•–—\0\0\0›\0\0\0\0\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½\
             ¾¿აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0№\
             \0\0"), ..PLAIN },
    Set { name: "greek", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s.....................w.www.w.wwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."),
        upper: &upper(161, "\u{2bd}\u{2bc}£\0\0¦§¨©\0«¬\u{ad}\0―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\0ΣΤΥΦΧΨΩΪΫάέήίΰαβ\
             γδεζηθικλμνξοπρςστυφχψωϊϋόύώ\0"), ..PLAIN },
    Set { name: "hebrew", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s...............................................................wwwwwwwwwwwwwwwwwwwwwwwwwww..cc."),
        upper: &upper(161, "\0¢£¤¥¦§¨©×«¬\u{ad}®‾°±²³´µ¶·¸¹÷»¼½¾\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
             \0\0\0\0\0\0‗\u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\
             \u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\
             \u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}\0\0\u{200e}\u{200f}\0"), ..PLAIN },
    Set { name: "hp8", shape: Shape::Single,
        classes: &classes(&[],
            b"ccccccccccccccccccccccccccccccccc................cc..................w......w.www..ww..ww.www.....................cccc.........c"),
        upper: &upper(161, "ÀÂÈÊËÎÏ´\u{2cb}\u{2c6}¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠš\
             ÚŸÿÞþ·µ¶¾—¼½ªº«■»±\0"), ..PLAIN },
    Set { name: "keybcs2", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww....................................................wwwwww.wwwww.ww................s"),
        upper: &upper(128, "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫\
             ╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√\u{207f}²■\u{a0}"), ..PLAIN },
    Set { name: "koi8r", shape: Shape::Single,
        classes: &classes(&[],
            b"...................................w...............w............wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"),
        upper: &upper(128, "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{a0}⌡°²·÷═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©юабцдефгхийклмнопяр\
             стужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"), ..PLAIN },
    Set { name: "koi8u", shape: Shape::Single,
        classes: &classes(&[],
            b"...................................ww.ww.....w.....ww.ww.....w..wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"),
        upper: &upper(128, "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■•√≈≤≥\u{a0}⌡°²·÷═║╒ёє╔ії╗╘╙╚╛ґ╝╞╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©юабцдефгхийклмнопяр\
             стужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"), ..PLAIN },
    Set { name: "latin1", shape: Shape::Single,
        classes: &classes(&[],
            b"...w......w.w.w...........w.w.wws...............................wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwww"),
        upper: &upper(128, "€\u{81}‚ƒ„…†‡\u{2c6}‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®\
             ¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"), ..PLAIN },
    Set { name: "latin2", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"................................sw.w.ww..wwww.ww.w.w.ww..wwww.wwwwwwwwwwwwwwwwww.wwwwww.wwwwwww.wwwwwwwwwwwwwwwwwwwwwww.wwwwwww."),
        upper: &upper(161, "Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{ad}ŽŻ°ą˛ł´ľś\u{2c7}¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěí\
             îďđńňóôőö÷řůúűüýţ˙"), ..PLAIN },
    Set { name: "latin5", shape: Shape::Single,
        classes: &classes(&[],
            b"................................s...............................wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwww"),
        upper: &upper(208, "ĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ"), ..PLAIN },
    Set { name: "latin7", shape: Shape::Single,
        classes: &classes(&[],
            b"wc.c....c.c.c...c.......c.c.c..csc...c....w....w..........w....wwwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."),
        upper: &upper(161, "”¢£¤„¦§Ø©Ŗ«¬\u{ad}®Æ°±²³“µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņó\
             ōõö÷ųłśūüżž’"), ..PLAIN },
    Set { name: "macce", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww..w....w...w..wwww..ww..wwwwwwwwww..ww.....wwwww........wwww..wwww..wwwwwwwwwwwwwwwwwwwwwwwwwww."),
        upper: &upper(128, "ÄĀāÉĄÖÜáąČäčĆćéŹźĎíďĒēĖóėôöõúĚěü†°Ę£§•¶ß®©™ę¨≠ģĮįĪ≤≥īĶ∂∑łĻļĽľĹĺŅņŃ¬√ńŇ∆«»…\u{a0}ňŐÕőŌ–—“\
             ”‘’÷◊ōŔŕŘ‹›řŖŗŠ‚„šŚśÁŤťÍŽžŪÓÔūŮÚůŰűŲųÝýķŻŁżĢ\u{2c7}"), ..PLAIN },
    Set { name: "macroman", shape: Shape::Single,
        classes: &classes(&[(127, b'.')],
            b"cwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.......w......ww..............ww....w......cww..........ww...........cwwwwwwwwww.wwwww.........."),
        upper: &upper(128, "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“\
             ”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙı\u{2c6}˜¯˘˙˚¸˝˛\u{2c7}"), ..PLAIN },
    Set { name: "sjis", shape: Shape::Sjis,
        classes: &classes(&[],
            b".wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww................................................................wwwwwwwwwwwwwwwwwwwwwwwwwwwww..."), ..PLAIN },
    Set { name: "swe7", shape: Shape::Single,
        classes: &classes(&[(91, b'w'), (92, b'w'), (93, b'w'), (94, b'w'), (123, b'w'), (125, b'w'), (126, b'w')],
            b"................................................................................................................................"),
        lower: &[(64, 0x00c9), (91, 0x00c4), (92, 0x00d6), (93, 0x00c5), (94, 0x00dc), (96, 0x00e9), (123, 0x00e4), (124, 0x00f6), (125, 0x00e5), (126, 0x00fc), (127, 0x0000)], ..PLAIN },
    Set { name: "tis620", shape: Shape::Single,
        classes: &classes(&[],
            b"................................................................................................................................"),
        upper: &upper(160, "\u{fffd}กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u{e31}าำ\u{e34}\u{e35}\u{e36}\
             \u{e37}\u{e38}\u{e39}\u{e3a}\u{fffd}\u{fffd}\u{fffd}\u{fffd}฿เแโใไๅ\u{e46}\u{e47}\u{e48}\
             \u{e49}\u{e4a}\u{e4b}\u{e4c}\u{e4d}\u{e4e}๏๐๑๒๓๔๕๖๗๘๙๚๛\u{fffd}\u{fffd}\u{fffd}\u{fffd}"), ..PLAIN },
    Set { name: "ujis", shape: Shape::Ujis,
        classes: &classes(&[],
            b"..............ww.................wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "utf8mb3", shape: Shape::Utf8mb3,
        classes: &classes(&[],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
    Set { name: "utf8mb4", shape: Shape::Utf8mb4,
        classes: &classes(&[],
            b"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."), ..PLAIN },
];
