//! Lists of words in refusals, one for each notion.
//!
//! Without accents and in lower case, as [`Reading`](super::Reading) has them. A star stands for the rest of a word.
//! English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Chinese and Japanese.

/// Nouns for a recipient.
pub(super) const RECIPIENT: &str = "\
    @, user, users, username, userid, recipient, recipients, recip, rcpt, addressee, mailbox, mailboxes, inbox,
    account, accounts, address, addresses, alias, local part, localpart, destination, subscriber, customer,
    person, member, employee, login, mailuser, maildrop, mail box, benutzer*, empfanger*, postfach, konto,
    adresse, adressat, emailadresse, mailadresse, teilnehmer, utilisateur, destinataire*, boite, compte, abonne,
    usuario*, destinatario*, buzon, casilla, cuenta, direccion*, utilizador, caixa, conta, endereco*, utente,
    casella, indirizz*, gebruiker*, ontvanger*, postvak, postbus, mailadres, emailadres, adres, uzytkownik*,
    odbiorc*, skrzynk*, kont*, adresat*, пользовател*, получател*, ящик*, адрес*, адресат*, учетн*, аккаунт*,
    абонент*, *用户*, *用戶*, *收件人*, *邮箱*, *郵箱*, *地址*, *帐号*, *账号*, *ユーザ*, *宛先*, *受信者*, *アドレス*, *メールボックス*, *アカウント*,
    correspondant*, student, staff, name";

/// Words for an account or mailbox that a server may have switched off.
pub(super) const ACCOUNT: &str = "\
    @, user, username, recipient, mailbox, inbox, account, address, alias, email, login, mail box, benutzer*,
    empfanger*, postfach, konto, adresse, utilisateur, destinataire, boite, compte, usuario, destinatario,
    buzon, casilla, cuenta, direccion, caixa, conta, endereco, utente, casella, indirizzo, gebruiker, postvak,
    emailadres, uzytkownik*, skrzynk*, kont*, пользовател*, ящик*, адрес*, учетн*, аккаунт*, *用户*, *邮箱*, *帐号*,
    *账号*, *アカウント*, *メールボックス*";

/// Nouns for a mailbox that can be full or out of reach.
pub(super) const MAILBOX: &str = "\
    @, user, recipient, recipients, users, mailbox, inbox, account, mail box, mail folder, maildrop, disk,
    store, postfach, konto, boite, compte, buzon, casilla, cuenta, bandeja, caixa, conta, casella, postvak,
    postbus, skrzynk*, ящик*, *邮箱*, *郵箱*, *メールボックス*, *容量*, *空间*, messagerie, correspondant, destinataire,
    destinatario, empfanger*, ontvanger, получател*";

/// Statements that a recipient or domain does not exist.
pub(super) const MISSING: &str = "\
    unknown, not known, isn known, no such, not found, can not find, could not find, could not be found,
    can not be found, unable to find, not exist, not exists, not exit, no exist, no exists, nonexistent,
    non existent, nonexistant, non existant, non existing, inexistent, never existed, not a valid, no valid,
    not valid, not a known, not a member of domain, not a current, not a registered, not registered, not recognized, not recognised,
    not recognize, unrecognized, unrecognised, not listed, not on file, not on this, not here, not at this,
    not defined, not have an account, not have a account, not have a valid, not have a mailbox, has no account,
    has no mailbox, no longer, not longer, not any longer, undeliverable, not deliverable, unroutable,
    unrouteable, not routable, could not be resolved, not a user, not user of, not in our, not in directory,
    not in the directory, has left, has moved, moved, not match, unbekannt*, nicht bekannt, existiert nicht,
    nicht existent, nicht gefunden, nicht vorhanden, nicht mehr, nicht zustellbar, gibt es nicht, inconnu*,
    n existe pas, n existe plus, inexistant*, introuvable*, non trouve*, pas trouve*, desconocid*, no existe,
    inexistente*, no encontrad*, no se encontro, no se encuentra, no se ha encontrado, nao existe,
    nao encontrad*, desconhecid*, nao foi encontrad*, sconosciut*, non esiste, non trovat*, non esistente,
    onbekend*, bestaat niet, niet gevonden, niet bekend, nieznan*, nie istnieje, nie znaleziono, nie znalezion*,
    nie ma, не существует, не существуют, не найден*, неизвест*, нет такого, несуществ*, *不存在*, *未找到*, *找不到*,
    *没有该*, *未开通*, *未知*, *存在しません*, *見つかりません*, *存在しない*, *不明*, *見つからない*, *使われていません*, *使用されていません*, not in use,
    no record, not have such, gone, graduated, not with, any more, anymore, any longer, not located, not locate,
    not be located, unable to locate, not been found, not live here, not assigned, never heard of, inesistent*,
    *没有*";

/// Adjectives for a wrong address, right beside the noun.
pub(super) const WRONG: &str = "\
    invalid, not valid, bad, illegal, wrong, incorrect, misspelled, ungultig*, falsch*, invalide*, invalid*,
    incorrecte, incorrect*, erronee, non valid*, non valable, no valid*, ongeldig*, nieprawidlow*, niepoprawn*,
    неверн*, некоррект*, недействит*, недопустим*, *无效*, *無効*, *错误*";

/// Statements that a mailbox is switched off for good.
pub(super) const DISABLED: &str = "\
    disabled, deactivated, suspended, closed, terminated, deleted, removed, discontinued, canceled, cancelled,
    not active, not activated, expired, retired, decommissioned, purged, locked, frozen, deprovisioned,
    not enabled, shut down, is blocked, has been blocked, been disabled, administratively disabled, deaktiviert,
    geloscht, gesperrt, geschlossen, stillgelegt, abgeschaltet, nicht aktiv, gekundigt, desactive*, supprime*,
    ferme*, cloture*, suspendu*, bloque, resilie*, desactivad*, deshabilitad*, eliminad*, suspendid*, cerrad*,
    cancelad*, desativad*, desabilitad*, encerrad*, excluid*, suspens*, inhabilitad*, disattivat*, disabilitat*,
    eliminat*, chius*, sospes*, cessat*, uitgeschakeld, opgeheven, verwijderd, gesloten, gedeactiveerd,
    zablokowan*, usunie*, nieaktywn*, wylaczon*, zamknie*, archived, archivee*, archivad*, отключен*, заблокирован*, удален*, закрыт*,
    деактивирован*, неактив*, *禁用*, *停用*, *注销*, *冻结*, *被禁*, *無効化*, *停止され*, *削除され*, *閉鎖*";

/// Statements that a mailbox is unused, for which it is blocked.
pub(super) const ABANDONED: &str = "\
    inactiv*, dormant, abandoned, due to inactivity, for inactivity, inaktiv*";

/// Phrases that by themselves say that there is no such recipient.
pub(super) const NOBODY: &str = "\
    no mailbox, no account, no user, no recipient, no inbox, no alias, no address, no valid recipient*,
    no user here, no one here, nobody here, nobody by, no one by, no recipient by, by that name, by this name,
    left the company, left the organization, left the organisation, no longer works, no longer work,
    no longer working, no longer employed, no longer with, no longer at, not work here, not work at,
    recipient not found, returned to sender unknown, mailbox name not allowed, mailbox name is not allowed,
    mailbox name invalid, mailbox name is invalid, not a mailbox, unknown local part, not our customer,
    delivery to this address is discontinued, address no longer accepts, no longer accepts mail,
    no longer accepting mail, no longer accepts email, no longer accepting email, no longer monitored,
    no longer receives, пользователя нет, адреса нет, ящика нет, адресата нет, получателя нет, абонента нет,
    nobody called, no one called, nobody with, no one with";

/// Combinations that look like a bad recipient and are not.
pub(super) const NOT_THE_RECIPIENT: &str = "\
    unknown error, unknown reason, unknown problem, unknown sender, unknown senders, unknown client,
    unknown command, unknown option, unknown protocol, unknown algorithm, from unknown, not found in whitelist,
    not in whitelist, not found in the whitelist, not on the whitelist, not in the whitelist, allow list,
    allowed list, not on the list of allowed, address book, contact list, contacts only, only accepts,
    only accept, known senders, may not exist, not permitted to send, not allowed to send,
    not authorized to send, not have permission, no permission, no rights, not valid for this,
    no valid certificate, no valid tls, went wrong, something wrong, wrong with";

/// Nouns for the sender.
pub(super) const SENDER: &str = "\
    sender, senders, mail from, mailfrom, return path, returnpath, envelope from, from address, from domain,
    from header, sending domain, sending host, sending server, sending ip, reply to, originator, your domain,
    your account, your ip, your server, your host, your hostname, your address, your email address,
    your network, your mail server, your message, client host, client ip, absender*, expediteur,
    emetteur, remitente, remetente, mittente, afzender, nadawc*, отправител*, *发件人*, *送信者*, *差出人*";

/// Words by which a server says that it refuses a sender.
pub(super) const REFUSED: &str = "\
    reject*, denied, deny, refused, blocked, banned, forbidden, not allowed, not permitted, not authorized,
    not authorised, unauthorized, invalid, unknown, not exist, not found, not valid, bad, fake, forged, illegal,
    failed, failure, unverified, not verify, could not be verified, can not be verified, not verified,
    not accepted, not resolve, unresolvable, must resolve, can not find, not be found, no dns, not have, syntax,
    restricted, suspect*, disabled, locked, suspended, not listed, not trusted, mismatch, violat*,
    unable to verify, verify, abgelehnt, ungultig*, gesperrt, unbekannt*, nicht erlaubt, nicht gefunden,
    refuse*, rejete*, inconnu*, invalide, rechazad*, no permitid*, rejeitad*, rifiutat*, non valid*, geweigerd,
    odrzucon*, отклон*, заблокирован*, не найден*, не существует, *拒*, *不存在*, *拒否*, denies, unvalidated,
    exceeded, unroutable, unrouteable, not routable, undeliverable, not deliverable, unreachable, not local,
    no such, nonexistent, non existent, not recognized, not recognised, unrecognized, unrecognised";

/// Phrases about the sender that name none.
pub(super) const SENDER_REFUSED: &str = "\
    sender verify, sender verification, sender callout, callback setup failed, badmailfrom, bad mail from,
    sending for this account, message sending, must have a valid, domain of sender, sender domain must,
    not like sender, not like your, requires a valid sender, unknown sender, unknown senders, envelope sender,
    null sender, invalid from, unauthorized sender, untrusted sender";

/// Phrases for too much or too fast mail.
pub(super) const RATE: &str = "\
    rate limit*, ratelimit*, rate limited, rate exceeded, sending rate, sending quota, sending limit,
    daily limit, daily quota, hourly, per hour, per day, per minute, throttl*, too many recipients,
    too many messages from, too many messages sent, too many connections, too many concurrent,
    too many sessions, too many invalid, too many unknown, too many bad, too many errors, too many emails,
    too many mails, too many rcpt, too many failed, too many requests, too fast, too quickly, too often,
    excessive*, exceeded the maximum number, exceeds the maximum number, maximum number of recipients,
    max recipients, maximum recipients, frequency, recipient limit, connection limit, messages limit,
    message limit, unusual rate, high volume, unexpected volume, harvest*, dictionary attack, directory attack,
    zu viele empfanger, zu viele verbindungen, trop de, demasiados destinatarios, *频率*, *过于频繁*, outgoing limit,
    an hour, a day, per second, at a rate, too rapidly, rapidly";

/// Phrases about the identity or reputation of the sender.
pub(super) const REPUTATION: &str = "\
    blacklist*, black list*, black listed, blocklist*, block list*, block listed, denylist*, deny list,
    blackhole*, black hole, rbl, rbls, dnsbl*, rhsbl, surbl, spamhaus*, spamcop*, spam cop, sorbs,
    barracudacentral, uceprotect*, abusix, proofpoint block*, blocked, banned, is listed, are listed,
    was listed, been listed, being listed, currently listed, listed by, listed at, reputation, senderscore,
    sender score, poor, suspicious, complaints, spf, dkim, dmarc, unauthenticated, authentication, authenticate,
    authenticated, auth required, authorization required, login required, sender id, alignment, reverse dns,
    rdns, ptr, reverse lookup, reverse hostname, reverse name, fcrdns, your hostname, helo, ehlo, bogus,
    generic hostname, dynamic ip, dynamic host, dynamic address, dialup, dial up, residential, starttls,
    tls required, requires tls, encryption required, requires encryption, greylist*, graylist*, grey listed,
    gray listed, grey listing, spoof*, impersonat*, phish*, anti spam, antispam, known spam*, open proxy,
    botnet, zombie, challenge, sender policy, challenge response, schwarze liste, liste noire, liste negra,
    lista negra, lista nera, zwarte lijst, czarn* list*, черн* спис*, спам*, *黑名单*, *黑名單*, *ブラックリスト*, *垃圾邮件*,
    *スパム*, *迷惑*, *信誉*, tls is required, require tls";

/// Phrases by which a server says that it does not relay to this recipient.
pub(super) const RELAYING: &str = "\
    relaying, relay access, relay denied, relay not, not relay, no relay*, unable to relay, can not relay,
    not allowed to relay, relay prohibited, relay operation, relay for, relay from, relay is, open relay,
    to relay, permitted to relay, rcpthosts, relay attempt, relais, non relais, relaying prohibited,
    not a gateway, not an open, not hosted, not handled here, not configured to accept,
    not accept mail for this domain, not a local domain, not local domain, not in my list, not in the list of,
    denies relay, relay deny, refuses relay, not in the allowed, allowed recipients";

/// Nouns for a message or a part of it.
pub(super) const MESSAGE: &str = "\
    message, messages, mail, email, size, body, attachment*, content, nachricht, mitteilung, taille, courrier,
    mensaje, mensagem, tamano, tamanho, messaggio, dimensione, bericht, wiadomosc*, сообщени*, письм*, размер*,
    *邮件*, *メール*, *サイズ*, header, headers, line, lines, subject";

/// Statements that a message is too big.
pub(super) const LARGE: &str = "\
    too large, too big, too long, exceeds, exceed, exceeded, exceeding, limit, larger than, bigger than,
    oversize*, over size*, maximum, zu gross, ubersteigt, uberschreitet, trop gros*, trop volumineu*,
    trop grand, demasiado grande, excede, supera, muito grande, troppo grande, te groot, za duz*, przekracza,
    превыша*, слишком больш*, *过大*, *太大*, *超过*, *大きすぎ*";

/// Words for faults of a message's content, such as viruses, forbidden attachments and malformed headers.
pub(super) const CONTENT: &str = "\
    virus*, malware, infected, trojan, worm, executable, attachment*, file type, file extension, bare lf,
    bare cr, bare newline*, bare linefeed*, bare line, bare carriage, smuggling, 8bit, non ascii, smtputf8,
    malformed, rfc5322, rfc2822, rfc822, mime, charset, character set, missing header, missing headers,
    header missing, header fields, headers are, header is, header field, invalid header*, duplicate header*,
    header syntax, message header*, missing date, missing from, missing subject, multiple from, date header,
    subject header, content reject*, content not, content denied, content filter, content is, mail content,
    message content, objectionable, profanity, line too long, line length, lines too long, conversion,
    unsupported media, url in, urls in, link in, links in, contains a link, contains url*, viren, anhang,
    piece jointe, anexo, adjunto, allegato, bijlage, zalacznik*, вложени*, вирус*, *病毒*, *附件*, *内容*, *ウイルス*,
    *添付*, illegal character*, invalid character*, subject line";

/// Phrases that by themselves say that a mailbox is full.
pub(super) const FULL: &str = "\
    quota, quotas, over quota, overquota, out of storage, storage limit, storage allocation, storage space,
    storage quota, exceeded storage, exceeds storage, insufficient storage, insufficient system storage,
    insufficient disk, insufficient space, not enough space, not enough storage, no space left, disk full,
    disk quota, mailbox size, mailbox limit, mailbox has exceeded, mailbox exceeds, mailbox exceeded,
    exceeded mailbox, exceed mailbox, too many messages in, too many messages on, too many mails on, is full,
    are full, was full, mailbox full, inbox full, account full, user full, folder full, too full, disk space,
    full mailbox, full inbox, box is full, over the limit, over limit, over its limit, over their limit,
    over the maximum allowed, no room, out of space, speicherplatz*, speichervolumen, speicherlimit,
    kontingent*, cuota, cupo, cota, spazio, espace de stockage, espacio*, espaco, pleine, przepelnion*,
    переполнен*, квот*, *已满*, *已滿*, *满了*, *空间不足*, *容量不足*, *容量超*, *超出容量*, *いっぱい*, *満杯*, *容量を超*, *容量オーバー*,
    storage, any more mail, no more mail, any more messages, speicher*, erschopft, *用完*, *用尽*, not enough room,
    no more room, allocated space, allotted space, space allocated, allowed size, disk usage, postfachgross*,
    mailboxgross*, no space";

/// Statements that a mailbox is full.
pub(super) const FILLED: &str = "\
    overfull, overflow, filled, voll, uberfullt, plein*, sature*, llen*, cheia, cheio, lotad*, pien*, vol,
    peln*, полон, полн*, *满*, *超出*, заполнен*, erschopft, reached its, reached the maximum, reached their,
    reached the limit";

/// Nouns for a domain.
pub(super) const DOMAIN: &str = "\
    domain, domains, domainname, host, hostname, domane, domaine, dominio, domein,
    domen*, домен*, *域名*, *ドメイン*";

/// Phrases that by themselves say that a domain takes no mail.
pub(super) const BAD_DOMAIN: &str = "\
    nxdomain, no mx, null mx, nullmx, no mail exchanger*, no mail exchange, no mail server, no mail servers,
    invalid domain, bad domain, domain invalid, domain is invalid, domain is not valid, domain expired,
    domain has expired, domain not accept mail, domain does not accept, domain accepts no, accepts no mail,
    bad destination system, bad destination host, nonexistent domain, non existent hosts, no a record,
    no dns record*";

/// Answer of a name server for a domain that does not exist, which counts whatever else the text says about the
/// look-up.
pub(super) const NO_SUCH_DOMAIN: &str = "nxdomain";

/// Phrases that show that the domain exists and only lacks the record that was asked for.
pub(super) const FOUND: &str = "host found, domain found, no data";

/// Phrases for a server that could not be reached.
pub(super) const UNREACHABLE: &str = "\
    timed out, time out, timeout, timeouts, connection refused, refused connection, refused to connect,
    connection reset, connection lost, lost connection, connection closed, closed connection,
    connection dropped, connection died, connection failed, connection error, no route to, network unreachable,
    network is unreachable, host unreachable, host is unreachable, unreachable, retry time, retry timeout,
    queue expired, message expired, message has expired, delivery time expired, envelope expired,
    delivery expired, mail expired, too many hops,
    too many received, hop count, hops, loop, loops, looping, mail loop, not connect, unable to connect,
    failed to connect, can not connect, not able to establish, establish an smtp, no answer, not answer,
    not respond*, not responding, no response, bad connection, name service error, name service, dns error,
    dns failure, dns lookup, dns query, lookup failure, lookup failed, server failure, servfail, try again,
    could not be delivered for, been in the queue, in the queue too long, giving up after, all delivery attempts,
    many delivery attempts, number of delivery attempts, maximum delivery attempts, several delivery attempts,
    multiple delivery attempts, repeated delivery attempts, delivery attempts failed, delivery attempts have failed,
    delivery attempts exhausted, delivery attempts exceeded, undelivered for, not been able to deliver, service unavailable, service not available,
    service is unavailable, host down, server down, zeituberschreitung, nicht erreichbar, delai depasse,
    injoignable, tiempo de espera, tempo limite, tempo esgotado, niet bereikbaar, nieosiagaln*, недоступен,
    истекло, *超时*, *连接失败*, *タイムアウト*, *接続でき*, no reply, next hop, unable to contact, not contact,
    could not reach, time limit";

/// Phrases for rules of the recipient's server.
pub(super) const POLICY: &str = "\
    spam*, junk, ube, uce, unsolicited, bulk, abuse, abusive, policy, policies, denied, deny, refuse, refused,
    refuses, prohibited, prohibition, forbidden, not permitted, not allowed, not authorized, not authorised,
    unauthorized, not accepted, not acceptable, unacceptable, not accept mail from, not accept email from,
    not accept messages from, rejected by, rejected due, rejected for, rejected because, rejected as, filter*,
    message rejected, message was rejected, message has been rejected, mail rejected, email rejected,
    messages rejected, reject your, rejected your, message blocked, security, whitelist*, white list*,
    allow list, restricted, restriction*, administrative*, violat*, unwanted, blocking, block, protected by,
    protection, only accepts, only accept, contacts only, not in your, permission*, rules, rule, legal,
    suspected, score, detected, threshold, marketing, newsletter*, advert*, known senders, may not exist,
    disabled for external, internal only, internal use, abgelehnt, verweigert, richtlinie*, unerwunscht*,
    nicht erlaubt, annahme, refuse*, rejete*, politique*, indesirable*, interdit*, rechazad*, politica*,
    no deseado, denegad*, prohibid*, no autorizad*, rejeitad*, recusad*, negad*, bloquead*, indesejad*,
    rifiutat*, respint*, bloccat*, negato, geweigerd, geblokkeerd, beleid, niet toegestaan, odrzucon*, odmow*,
    polityk*, zablokowan*, отклон*, отказ*, запрещ*, политик*, заблокирован*, *拒绝*, *拒收*, *拒絕*, *屏蔽*, *违规*,
    *拒否*, *ポリシー*, *禁止*, *限制*, denies, not want, go away, not wanted, black, scam, bot, members only, authoriz*,
    authoris*, chosen not, not to receive, not wish to receive, opted out, only reachable, from inside,
    from outside, external sender*, outside sender*, internal sender*, openspf";

/// Words for a temporary refusal.
pub(super) const TEMPORARY: &str = "\
    temporar*, currently disabled, currently suspended, try again, try later, again later, later, transient,
    maintenance, vorubergehend, zeitweise, temporaire*, temporal*, tijdelijk, tymczasow*, временн*, позже, *暂时*,
    *稍后*, *一時的*, please retry";

/// Phrases for a fault of the recipient's server.
pub(super) const TROUBLE: &str = "\
    internal error, local error, system error, server error, configuration error, misconfigur*, database, ldap,
    unable to process, can not process, could not process, internal server, fatal error, software error,
    unknown error, unknown reason, unexpected, error in processing, processing error, permission denied, pipe,
    command failed, protocol error, protocol violation, bad sequence, out of memory, resources, not implemented,
    unrecognized command, command unrecognized, command not recognized, unknown command, verification problem,
    unable to verify, could not verify, can not verify, unverified, not verified, callout, syntax error,
    backend, looking up, lookup error, retry, went wrong, something wrong, wrong with";

/// Words for a refusal without a reason.
pub(super) const REJECTED: &str = "\
    reject*, declined, not taken, aborted";

/// Statements that a mailbox is out of reach.
pub(super) const UNAVAILABLE: &str = "\
    unavailable, not available, not accessible, nicht verfugbar, indisponible, no disponible, indisponivel,
    non disponibile, niet beschikbaar, niedostepn*, недоступ*";

/// Words for too many recipients.
pub(super) const MANY: &str = "too many, limit, limits, exceed*, excessive*, large number, lots of";

/// Nouns for recipients of which one message or session has too many.
pub(super) const THEM: &str = "users, recipients, addresses, mailboxes, empfanger, destinataires, destinatarios";

/// Words for "no" right before a noun. Farther from a mailbox they may say that there is no access to it.
pub(super) const NONE: &str = "\
    kein, keine, keinen, aucun, aucune, ningun*, nenhum*, nessun*, geen, zaden, zadna";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delivery::bounce::reading::Reading;

    /// A phrase that no text is ever read as would be useless.
    #[test]
    fn every_phrase_can_be_found() {
        for list in [
            RECIPIENT,
            ACCOUNT,
            MAILBOX,
            MISSING,
            WRONG,
            DISABLED,
            ABANDONED,
            NOBODY,
            NOT_THE_RECIPIENT,
            SENDER,
            REFUSED,
            SENDER_REFUSED,
            RATE,
            REPUTATION,
            RELAYING,
            MESSAGE,
            LARGE,
            CONTENT,
            FULL,
            FILLED,
            DOMAIN,
            BAD_DOMAIN,
            NO_SUCH_DOMAIN,
            FOUND,
            UNREACHABLE,
            POLICY,
            TEMPORARY,
            TROUBLE,
            REJECTED,
            UNAVAILABLE,
            MANY,
            THEM,
            NONE,
        ] {
            for phrase in list.split(',').map(str::trim) {
                let text = if phrase == "@" { "a@b.co".to_owned() } else { phrase.replace('*', "") };
                assert!(!phrase.is_empty() && Reading::of(&text).says(phrase), "{phrase:?}");
            }
        }
    }
}
